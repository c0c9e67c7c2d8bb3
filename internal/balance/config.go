// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"fmt"
	"math"
	"time"
)

// Metric is what is made even.
type Metric string

const (
	// MetricCPU is the part of its processors that an endpoint uses.
	MetricCPU Metric = "CPU"
	// MetricInFlight is the number of requests that an endpoint works on.
	MetricInFlight Metric = "InFlight"
	// MetricMax is the larger of both, each relative to its own mean.
	MetricMax Metric = "Max"
	// MetricCustom is whatever the reports say in Report.Custom.
	MetricCustom Metric = "Custom"
)

// Config is how a State is updated. Those of [Profile] are complete.
type Config struct {
	// Metric is what is made even.
	Metric Metric
	// Kp is the part of a small error that an update corrects, KpFar that of an error beyond FarError.
	Kp, KpFar float64
	// FarError is the size of an error, as a logarithm of a ratio, from which KpFar is used.
	FarError float64
	// Ki and Kd are the gains of the integral and of the derivative of the error.
	Ki, Kd float64
	// Additive makes the controller the literal PID: the error is an absolute difference of utilisation, and the output is
	// added to the weight. There is no predictor and no noise gate then.
	Additive bool
	// DeadBand is the error up to which nothing moves. 0 leaves that to the noise gate alone.
	DeadBand float64
	// MinNoise and MaxNoise bound the noise that the gate works with.
	MinNoise, MaxNoise float64
	// MaxStep is the most that an update changes a weight by, as a logarithm, before all are brought to a mean of 1.
	MaxStep float64
	// MinWeight and MaxWeight bound weights, in means. GuardedMinWeight is the lower bound of a guarded endpoint.
	MinWeight, MaxWeight, GuardedMinWeight float64
	// ColdStartWeight is the weight of an endpoint that joins others, in means.
	ColdStartWeight float64
	// MinReporting is the part of the ready endpoints that must report for an update to happen; 2 must in any case.
	MinReporting float64
	// MinLoad is the mean load below which an update does not happen.
	MinLoad float64
	// ErrorPenalty is the load, in means, that an endpoint which fails every request is taken to have in addition. What counts is
	// by how much an endpoint's part of failed requests is above the median.
	ErrorPenalty float64
	// GuardRatio is how many times as many requests in flight as the median, for its weight, an endpoint has when it is guarded.
	GuardRatio float64
	// Interval is the time between updates. StaleAfter is the age from which a report is not used.
	Interval, StaleAfter time.Duration
}

// The names of [Profile].
const (
	// ProfileBalanced is for most services.
	ProfileBalanced = "Balanced"
	// ProfileCautious moves weights half as much at a time.
	ProfileCautious = "Cautious"
	// ProfileFast updates every 5 seconds. It needs reports that are as frequent.
	ProfileFast = "Fast"
	// ProfileRing is for hash rings, on which a change of weights moves keys.
	ProfileRing = "Ring"
	// ProfileCustom is the literal PID.
	ProfileCustom = "Custom"
)

// ProfileNames returns the names of all profiles.
func ProfileNames() []string {
	return []string{ProfileBalanced, ProfileCautious, ProfileFast, ProfileRing, ProfileCustom}
}

// Profile returns the configuration with a name, false if there is none.
func Profile(name string) (Config, bool) {
	c := Config{
		Metric: MetricCPU,
		Kp:     0.35, KpFar: 0.6, FarError: 0.1,
		MinNoise: 0.005, MaxNoise: 0.05,
		MaxStep:   math.Log(1.5),
		MinWeight: 0.1, MaxWeight: 8, GuardedMinWeight: 0.01,
		ColdStartWeight: 0.1,
		MinReporting:    0.5,
		MinLoad:         0.02,
		ErrorPenalty:    2,
		GuardRatio:      3,
		Interval:        10 * time.Second,
		StaleAfter:      20 * time.Second,
	}
	switch name {
	case ProfileBalanced:
	case ProfileCautious:
		c.Kp, c.KpFar, c.MaxStep = 0.2, 0.3, math.Log(1.2)
	case ProfileFast:
		c.Kp, c.KpFar, c.Interval = 0.5, 0.8, 5*time.Second
	case ProfileRing:
		c.DeadBand, c.Interval, c.StaleAfter = 0.03, 60*time.Second, 180*time.Second
		c.Kp, c.KpFar = 0.2, 0.2 // A point that moves takes from its neighbours on the ring too: larger steps never settle.
	case ProfileCustom:
		c.Additive, c.Kp, c.KpFar, c.Ki, c.Kd = true, 0.5, 0.5, 0.05, 0.05
	default:
		return Config{}, false
	}
	return c, true
}

// MinStaleAfter is the shortest time that a report is used for, whatever the interval of reports.
const MinStaleAfter = 20 * time.Second

// StaleAfter returns after how long reports that come every interval are not used: three intervals, at least 20 seconds.
func StaleAfter(interval time.Duration) time.Duration {
	return max(3*interval, MinStaleAfter)
}

// Limits of a Config.
const (
	// MaxGain is the most that Kp, KpFar, Ki and Kd may be.
	MaxGain = 10
	// MaxInterval is the longest Interval.
	MaxInterval = time.Hour
	// MaxStaleAfter is the longest StaleAfter: publications are remembered as long.
	MaxStaleAfter = time.Hour
)

// Validate returns an error that names the first field with a value outside its limits.
func (c Config) Validate() error {
	switch c.Metric {
	case MetricCPU, MetricInFlight, MetricMax, MetricCustom:
	default:
		return fmt.Errorf("metric is %q, it must be CPU, InFlight, Max or Custom", c.Metric)
	}
	for _, f := range []struct {
		name           string
		value, low, up float64
	}{
		{"kp", c.Kp, 0, MaxGain}, {"kpFar", c.KpFar, 0, MaxGain}, {"ki", c.Ki, 0, MaxGain}, {"kd", c.Kd, 0, MaxGain},
		{"farError", c.FarError, 0, 10}, {"deadBand", c.DeadBand, 0, 1},
		{"minNoise", c.MinNoise, 0, 1}, {"maxNoise", c.MaxNoise, c.MinNoise, 1},
		{"maxStep", c.MaxStep, 0.0001, math.Log(10)},
		{"guardedMinWeight", c.GuardedMinWeight, 0.0001, 1}, {"minWeight", c.MinWeight, c.GuardedMinWeight, 1}, {"maxWeight", c.MaxWeight, 1, 1000},
		{"coldStartWeight", c.ColdStartWeight, c.GuardedMinWeight, 1},
		{"minReporting", c.MinReporting, 0, 1}, {"minLoad", c.MinLoad, 0, 1},
		{"errorPenalty", c.ErrorPenalty, 0, 100}, {"guardRatio", c.GuardRatio, 1.5, 1000},
	} {
		if within := f.value >= f.low && f.value <= f.up; !within { // NaN is in no range.
			return fmt.Errorf("%s is %v, it must be from %v to %v", f.name, f.value, f.low, f.up)
		}
	}
	if c.Interval < time.Second || c.Interval > MaxInterval {
		return fmt.Errorf("interval is %v, it must be from 1s to %v", c.Interval, MaxInterval)
	}
	if c.StaleAfter < c.Interval || c.StaleAfter > MaxStaleAfter {
		return fmt.Errorf("staleAfter is %v, it must be from the interval, %v, to %v", c.StaleAfter, c.Interval, MaxStaleAfter)
	}
	return nil
}
