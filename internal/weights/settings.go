// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
)

// The intervals of sources whose interval is not set: reports that come, and figures that are asked for.
const (
	defaultReportInterval = 5 * time.Second
	defaultQueryInterval  = 15 * time.Second
)

// interval returns how often a source reports.
func interval(source v1alpha1.LoadSource) time.Duration {
	switch {
	case source.Interval != nil:
		return source.Interval.Duration
	case source.Type == v1alpha1.SourcePrometheus || source.Type == v1alpha1.SourceMetrics:
		return defaultQueryInterval
	default:
		return defaultReportInterval
	}
}

// staleAfter returns the age from which a report of a source does not count.
func staleAfter(source v1alpha1.LoadSource) time.Duration {
	if source.StaleAfter != nil {
		return source.StaleAfter.Duration
	}
	return balance.StaleAfter(interval(source))
}

// profile returns the name of the profile that a spec asks for or leaves to its kind of target.
func profile(spec *v1alpha1.WeightPolicySpec) v1alpha1.WeightProfile {
	switch {
	case spec.Strategy.Profile != "":
		return spec.Strategy.Profile
	case spec.TargetRef.Kind == v1alpha1.TargetHashRing:
		return v1alpha1.ProfileRing
	default:
		return v1alpha1.ProfileBalanced
	}
}

// configOf returns the controller that a spec asks for. The error names the field, which the schema has checked as far as it can.
func configOf(spec *v1alpha1.WeightPolicySpec) (balance.Config, error) {
	name := profile(spec)
	config, ok := balance.Profile(string(name))
	if !ok {
		return config, fmt.Errorf("spec.strategy.profile: %q is not one of %s", name, strings.Join(balance.ProfileNames(), ", "))
	}
	if metric := spec.Load.Metric; metric != "" {
		config.Metric = balance.Metric(metric)
	}
	d := decimals{}
	if pid := spec.Strategy.PID; pid != nil {
		config.Kp, config.Ki, config.Kd = d.number("strategy.pid.kp", pid.Kp), d.number("strategy.pid.ki", pid.Ki), d.number("strategy.pid.kd", pid.Kd)
		config.KpFar = config.Kp
		if pid.Interval != nil {
			config.Interval = pid.Interval.Duration
		}
	}
	limits := spec.Limits
	config.MinWeight, config.MaxWeight = d.number("limits.minWeight", limits.MinWeight), d.number("limits.maxWeight", limits.MaxWeight)
	config.GuardedMinWeight = config.MinWeight / 10
	config.ColdStartWeight = d.number("limits.coldStartWeight", limits.ColdStartWeight)
	config.MaxStep = min(config.MaxStep, math.Log1p(d.percentage("limits.maxStep", limits.MaxStep)))
	config.MinReporting = d.percentage("limits.minReporting", limits.MinReporting)
	config.ErrorPenalty = d.number("load.errorPenalty", spec.Load.ErrorPenalty)
	for _, source := range spec.Load.Sources {
		config.StaleAfter = max(config.StaleAfter, staleAfter(source))
	}
	config.StaleAfter = max(config.StaleAfter, config.Interval) // An update uses what came since the one before.
	if d.err != nil {
		return config, d.err
	}
	if err := config.Validate(); err != nil {
		return config, fmt.Errorf("spec: %w", err)
	}
	return config, nil
}

// decimals reads the numbers of a spec and keeps the first error.
type decimals struct{ err error }

func (d *decimals) number(field, text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if (err != nil || math.IsNaN(value) || math.IsInf(value, 0)) && d.err == nil {
		d.err = fmt.Errorf("spec.%s: %q is not a number", field, text)
	}
	return value
}

// percentage returns "50%" as 0.5.
func (d *decimals) percentage(field, text string) float64 {
	digits, ok := strings.CutSuffix(text, "%")
	if !ok && d.err == nil {
		d.err = fmt.Errorf("spec.%s: %q is not a percentage", field, text)
	}
	return d.number(field, digits) / 100
}

// staticWeights returns weights by the names of endpoints.
func staticWeights(static *v1alpha1.StaticWeights) (map[string]float64, error) {
	d := decimals{}
	byName := map[string]float64{}
	if static != nil {
		for _, e := range static.Endpoints {
			byName[e.Name] = d.number("strategy.staticWeights["+e.Name+"].weight", e.Weight)
		}
	}
	return byName, d.err
}
