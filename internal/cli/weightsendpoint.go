// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// The defaults of spec.load.sources, as the balancer has them.
const (
	defaultReportInterval = 5 * time.Second
	defaultPollInterval   = 15 * time.Second
	minStaleAfter         = 20 * time.Second
)

// explainEndpoint says why one endpoint has its weight.
func (r *WeightsExplainReport) explainEndpoint(
	policy *v1alpha1.WeightPolicy, served servedWeights, status *PolicyReport, name string, live livePolicy,
) error {
	at := slices.IndexFunc(status.Endpoints, func(e EndpointReport) bool { return e.ID == name })
	if at < 0 {
		at = slices.IndexFunc(status.Endpoints, func(e EndpointReport) bool { return e.Name == name || e.Address == name })
	}
	if at < 0 {
		return noSuchEndpoint(status, name, live)
	}
	found := status.Endpoints[at]
	set := served.endpoints[slices.IndexFunc(served.endpoints, func(e v1alpha1.WeightedEndpoint) bool { return e.ID == found.ID })]
	r.Endpoint = &found
	r.Weight = slices.Concat(
		[]string{weightSentence(found, status)}, loadSentences(policy, found), []string{reportSentence(policy, set, live.now())},
		stateSentences(policy, found), memorySentences(set), []string{nextSentence(policy, found, status)},
	)
	return nil
}

func noSuchEndpoint(status *PolicyReport, name string, live livePolicy) error {
	var names []string
	for _, e := range status.Endpoints {
		names = append(names, e.called())
	}
	hint := fmt.Sprintf("%s lists them", live.command("status"))
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return fmt.Errorf("%s has no endpoint %q: %s", live, name, hint)
}

// weightSentence says what it gets, and whether that is what was computed.
func weightSentence(e EndpointReport, status *PolicyReport) string {
	text := fmt.Sprintf("It has the weight %s, where 1 is the mean of all", decimals(e.Weight, 4))
	switch {
	case e.Computed == e.Weight:
		return text + "."
	case status.Weights != nil && status.Weights.Pinned > 0:
		return fmt.Sprintf("%s: that of revision %d, which the weights are pinned to; the controller has %s for it.", text, status.Weights.Pinned, decimals(e.Computed, 4))
	default:
		return fmt.Sprintf("%s; the controller has %s for it, of which the rollout serves %s.", text, decimals(e.Computed, 4), dash(status.Rollout))
	}
}

// loadSentences say what it uses.
func loadSentences(policy *v1alpha1.WeightPolicy, e EndpointReport) []string {
	if e.ReportedAt == "" {
		return nil
	}
	text := fmt.Sprintf("Its utilisation is %s", decimals(e.Utilization, 4))
	if e.OverAverage > 0 {
		text += fmt.Sprintf(", %s of the mean", decimals(e.OverAverage, 3))
		if len(policy.Spec.Locality) > 0 {
			text += " of zone " + dash(e.Zone)
		}
	}
	return []string{text + "."}
}

// reportSentence says how old its last report is, and from which age one no longer counts.
func reportSentence(policy *v1alpha1.WeightPolicy, e v1alpha1.WeightedEndpoint, now time.Time) string {
	if e.ReportedAt == nil {
		return "No report of it has come yet."
	}
	text := fmt.Sprintf("Its last report, from %s, ended %s ago", dash(string(e.Source)), age(now, e.ReportedAt.Time))
	stale, known := staleAfter(policy, e.Source)
	switch {
	case !known:
		return text + "."
	case now.Sub(e.ReportedAt.Time) >= stale:
		return fmt.Sprintf("%s; from %s on a report no longer counts.", text, stale)
	default:
		return fmt.Sprintf("%s, and counts until it is %s old.", text, stale)
	}
}

// staleAfter returns the age from which reports of a source no longer count.
func staleAfter(policy *v1alpha1.WeightPolicy, source v1alpha1.LoadSourceType) (time.Duration, bool) {
	for _, s := range policy.Spec.Load.Sources {
		if s.Type != source {
			continue
		}
		if s.StaleAfter != nil {
			return s.StaleAfter.Duration, true
		}
		interval := defaultReportInterval
		if source == v1alpha1.SourcePrometheus || source == v1alpha1.SourceMetrics {
			interval = defaultPollInterval
		}
		if s.Interval != nil {
			interval = s.Interval.Duration
		}
		return max(3*interval, minStaleAfter), true
	}
	return 0, false
}

// stateSentences say what the controller makes of it, and which limit it is at.
func stateSentences(policy *v1alpha1.WeightPolicy, e EndpointReport) []string {
	limits := policy.Spec.Limits
	switch v1alpha1.EndpointState(e.State) {
	case v1alpha1.EndpointCold:
		return []string{fmt.Sprintf("It is Cold: new endpoints begin with limits.coldStartWeight %s until their first report.", cmp.Or(limits.ColdStartWeight, "0.1"))}
	case v1alpha1.EndpointSilent:
		return []string{"It is Silent: without a fresh report its weight stays as it is."}
	case v1alpha1.EndpointGuarded:
		return []string{fmt.Sprintf("It is Guarded: it counts as busier than it says, because its requests fail or wait. It can get a tenth of limits.minWeight %s.", cmp.Or(limits.MinWeight, "0.1"))}
	case v1alpha1.EndpointClamped:
		if e.Computed > 1 {
			return []string{fmt.Sprintf("It is Clamped: it has the largest weight, limits.maxWeight %s, and could take more.", cmp.Or(limits.MaxWeight, "8"))}
		}
		return []string{fmt.Sprintf("It is Clamped: it has the least weight, limits.minWeight %s, and that is still too much.", cmp.Or(limits.MinWeight, "0.1"))}
	case v1alpha1.EndpointNotReady:
		return []string{"It is NotReady: its weight stays for when it is ready again."}
	default:
		return nil
	}
}

// memorySentences say what the controller remembers of it. The error is the logarithm of the mean over its utilisation.
func memorySentences(e v1alpha1.WeightedEndpoint) []string {
	const millionth = 1e-6
	var list []string
	if e.LastError != 0 {
		over := math.Exp(-float64(e.LastError) * millionth)
		list = append(list, fmt.Sprintf("At the last update it counted as %s of the mean.", decimals(round(over, 3), 3)))
	}
	if e.Integral != 0 {
		list = append(list, fmt.Sprintf("The integral of its error is %s.", decimals(round(float64(e.Integral)*millionth, 4), 4)))
	}
	return list
}

// nextSentence says what happens to its weight.
func nextSentence(policy *v1alpha1.WeightPolicy, e EndpointReport, status *PolicyReport) string {
	step := cmp.Or(policy.Spec.Limits.MaxStep, "50%")
	switch state := v1alpha1.EndpointState(e.State); {
	case policy.Annotations[v1alpha1.AnnotationPinnedWeights] != "":
		return "Next: nothing, until the pin is taken away."
	case policy.Spec.Suspend:
		return "Next: nothing, while spec.suspend is true."
	case policy.Spec.Strategy.Type == v1alpha1.StrategyEqual || policy.Spec.Strategy.Type == v1alpha1.StrategyStatic:
		return fmt.Sprintf("Next: nothing, since strategy %s does not follow the load.", policy.Spec.Strategy.Type)
	case state == v1alpha1.EndpointCold || state == v1alpha1.EndpointSilent:
		return "Next: its weight changes with the first update after a report of it."
	case state == v1alpha1.EndpointNotReady:
		return "Next: its weight changes when it is ready and reports."
	case e.OverAverage == 0 || stateOf(policy, v1alpha1.ConditionReporting) == "" || status.MaxOverAverage == "":
		return "Next: its weight changes when the load has been measured."
	case e.OverAverage > 1.01:
		return fmt.Sprintf("Next: its weight falls, as long as it uses more than the mean; a step is at most the factor that limits.maxStep %s allows.", step)
	case e.OverAverage < 0.99:
		return fmt.Sprintf("Next: its weight grows, as long as it uses less than the mean; by at most limits.maxStep %s in an update.", step)
	default:
		return "Next: its weight stays, within what is noise."
	}
}
