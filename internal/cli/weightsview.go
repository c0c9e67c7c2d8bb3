// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
)

// PolicyReport is what "weights status NAME" prints.
type PolicyReport struct {
	PolicyRow
	// Utilization is the mean of the endpoints that report, and P95OverAverage the 95th percentile over it.
	Utilization    string `json:"utilization,omitempty"`
	P95OverAverage string `json:"p95OverAverage,omitempty"`
	// MeasuredAt is when, in the form of RFC 3339 and UTC.
	MeasuredAt string `json:"measuredAt,omitempty"`
	// Counts counts the endpoints.
	Counts     *v1alpha1.EndpointCounts   `json:"endpoints,omitempty"`
	Sources    []v1alpha1.SourceStatus    `json:"sources,omitempty"`
	RolloutNow *v1alpha1.RolloutStatus    `json:"rolloutStatus,omitempty"`
	Weights    *v1alpha1.PublishedWeights `json:"weights,omitempty"`
	Shard      *v1alpha1.ShardStatus      `json:"shard,omitempty"`
	Conditions []metav1.Condition         `json:"conditions,omitempty"`
	// Endpoints are those that have weights, the one furthest above the mean first.
	Endpoints []EndpointReport `json:"endpointWeights"`
	// Notes are what else matters, as sentences.
	Notes []string `json:"notes,omitempty"`
}

// PolicyRow is what the list says of a WeightPolicy.
type PolicyRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Target is such as "Service/checkout:grpc".
	Target string `json:"target"`
	// MaxOverAverage, NoiseFloor and Predicted are ratios to the mean utilisation.
	MaxOverAverage string `json:"maxOverAverage,omitempty"`
	NoiseFloor     string `json:"noiseFloor,omitempty"`
	Predicted      string `json:"predictedMaxOverAverage,omitempty"`
	// Reporting is how many endpoints report of those that are ready, such as "9/10".
	Reporting string `json:"reporting,omitempty"`
	Rollout   string `json:"rollout,omitempty"`
	// Ready is the reason of condition Ready behind its status, such as "True/WeightsServed"; Converged and Effective likewise.
	Ready     string `json:"ready,omitempty"`
	Converged string `json:"converged,omitempty"`
	Effective string `json:"effective,omitempty"`
	Version   int64  `json:"version,omitempty"`
	Pinned    int64  `json:"pinned,omitempty"`
	Holder    string `json:"holder,omitempty"`
	// Outdated says that the balancer has not looked at the present spec yet.
	Outdated bool `json:"outdated,omitempty"`
}

// EndpointReport is one endpoint with its weight.
type EndpointReport struct {
	// ID, Name and Address are what it is called by.
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
	Zone    string `json:"zone,omitempty"`
	// Weight is what is served, Computed what the controller wants; 1 is the mean.
	Weight   float64 `json:"weight"`
	Computed float64 `json:"computed"`
	// Utilization is what was measured last, OverAverage that over the mean of those that it is balanced with; absent where nothing was.
	Utilization float64 `json:"utilization,omitempty"`
	OverAverage float64 `json:"overAverage,omitempty"`
	State       string  `json:"state,omitempty"`
	Source      string  `json:"source,omitempty"`
	// ReportedAt is when its last report ended, in the form of RFC 3339 and UTC; Age how long that is ago.
	ReportedAt string `json:"reportedAt,omitempty"`
	Age        string `json:"age,omitempty"`
}

// called is how a table calls the endpoint.
func (e EndpointReport) called() string { return cmp.Or(e.Name, e.ID) }

// rowOf sums a policy up.
func rowOf(p *v1alpha1.WeightPolicy) PolicyRow {
	s := p.Status
	row := PolicyRow{
		Namespace: p.Namespace, Name: p.Name, Target: catalog.Target(p.Spec.TargetRef), MaxOverAverage: s.MaxOverAverage, NoiseFloor: s.NoiseFloor,
		Predicted: s.PredictedMaxOverAverage, Outdated: s.ObservedGeneration != p.Generation,
		Ready: stateOf(p, v1alpha1.ConditionReady), Converged: stateOf(p, v1alpha1.ConditionConverged), Effective: stateOf(p, v1alpha1.ConditionEffective),
	}
	if e := s.Endpoints; e != nil {
		row.Reporting = strconv.Itoa(int(e.Reporting)) + "/" + strconv.Itoa(int(e.Ready))
	}
	if s.Rollout != nil {
		row.Rollout = s.Rollout.Percent
	}
	if s.Weights != nil {
		row.Version, row.Pinned = s.Weights.Version, s.Weights.Pinned
	}
	if s.Shard != nil {
		row.Holder = s.Shard.Holder
	}
	return row
}

// stateOf returns status and reason of a condition; "" where there is none.
func stateOf(p *v1alpha1.WeightPolicy, kind v1alpha1.ConditionType) string {
	for _, c := range p.Status.Conditions {
		if c.Type == string(kind) {
			return string(c.Status) + "/" + c.Reason
		}
	}
	return ""
}

// reportOf describes a policy with its endpoints.
func reportOf(p *v1alpha1.WeightPolicy, served servedWeights, now time.Time) *PolicyReport {
	s := p.Status
	report := &PolicyReport{
		PolicyRow: rowOf(p), Utilization: s.Utilization, P95OverAverage: s.P95OverAverage, Counts: s.Endpoints, Sources: s.Sources, RolloutNow: s.Rollout,
		Weights: s.Weights, Shard: s.Shard, Conditions: s.Conditions, Endpoints: describeEndpoints(p, served.endpoints, now),
		Notes: served.notes,
	}
	if s.UpdatedAt != nil {
		report.MeasuredAt = rfc3339(s.UpdatedAt.Time)
	}
	if report.Outdated {
		report.Notes = append(report.Notes, "the balancer has not looked at the present spec yet")
	}
	if pin := p.Annotations[v1alpha1.AnnotationPinnedWeights]; pin != "" {
		report.Notes = append(report.Notes, "the weights are pinned to revision "+pin+": kubectl hashring weights resume "+p.Name+" -n "+p.Namespace+" lets them follow the load again")
	}
	return report
}

func rfc3339(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// describeEndpoints returns the endpoints, the one furthest above the mean first, and those of which nothing is known last.
func describeEndpoints(p *v1alpha1.WeightPolicy, endpoints []v1alpha1.WeightedEndpoint, now time.Time) []EndpointReport {
	means := meansOf(p, endpoints)
	list := make([]EndpointReport, 0, len(endpoints))
	for _, e := range endpoints {
		r := EndpointReport{
			ID: e.ID, Name: e.Name, Zone: e.Zone, Weight: scaled(e.Weight), Computed: scaled(cmp.Or(e.Computed, e.Weight)),
			State: string(e.State), Source: string(e.Source),
		}
		if e.Address != "" {
			r.Address = joinPort(e.Address, e.Port)
		}
		if measured(e) {
			r.Utilization = round(float64(e.Utilization)/v1alpha1.WeightScale, 4)
			if mean := means[meanKey(p, e)]; mean > 0 {
				r.OverAverage = round(float64(e.Utilization)/mean, 3)
			}
			r.ReportedAt, r.Age = rfc3339(e.ReportedAt.Time), age(now, e.ReportedAt.Time)
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b EndpointReport) int {
		return cmp.Or(cmp.Compare(b.OverAverage, a.OverAverage), strings.Compare(a.called(), b.called()))
	})
	return list
}

func scaled(weight int32) float64 { return float64(weight) / v1alpha1.WeightScale }

// measured says that something is known of the load of an endpoint.
func measured(e v1alpha1.WeightedEndpoint) bool { return e.ReportedAt != nil }

// meansOf returns the mean utilisation of those that balance each other: of all, or by zone where the policy has rules of locality.
func meansOf(p *v1alpha1.WeightPolicy, endpoints []v1alpha1.WeightedEndpoint) map[string]float64 {
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, e := range endpoints {
		if measured(e) && e.State != v1alpha1.EndpointNotReady && e.State != v1alpha1.EndpointSilent {
			sums[meanKey(p, e)] += float64(e.Utilization)
			counts[meanKey(p, e)]++
		}
	}
	for key := range sums {
		sums[key] /= counts[key]
	}
	return sums
}

func meanKey(p *v1alpha1.WeightPolicy, e v1alpha1.WeightedEndpoint) string {
	if len(p.Spec.Locality) == 0 {
		return ""
	}
	return e.Zone
}

func joinPort(address string, port int32) string {
	switch {
	case port == 0:
		return address
	case strings.Contains(address, ":"):
		return "[" + address + "]:" + strconv.Itoa(int(port))
	default:
		return address + ":" + strconv.Itoa(int(port))
	}
}
