// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// The schema's bounds of status.warnings and its messages.
const (
	maxWarnings     = 16
	maxMessageBytes = 1024
)

// number reads a decimal annotation. What is missing, was edited into something else, or is larger than anything that was
// ever counted, counts as 0.
func number(annotations map[string]string, key string) int64 {
	const limit = 1 << 53
	n, err := strconv.ParseInt(annotations[key], 10, 64)
	if err != nil || n < 0 || n > limit {
		return 0
	}
	return n
}

// Status returns the status of r after the decision was carried out, with failure nil where that succeeded. It starts
// from the present status, so that what does not change keeps its time stamps.
func Status(r *v1alpha1.HashRing, d Decision, failure error, now time.Time) v1alpha1.HashRingStatus {
	s := *r.Status.DeepCopy()
	s.ObservedGeneration = r.Generation
	if d.Refusal == nil && d.Wait == 0 && failure == nil {
		describe(&s, d, now)
	}
	v := verdict(r.Status, d, failure)
	set := func(kind v1alpha1.ConditionType, status metav1.ConditionStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: string(kind), Status: status, Reason: string(v.reason), Message: v.message,
			ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	set(v1alpha1.ConditionReady, v.ready)
	set(v1alpha1.ConditionPublished, v.published)
	// kstatus wants these two only while they hold.
	for kind, holds := range map[v1alpha1.ConditionType]bool{v1alpha1.ConditionReconciling: v.reconciling, v1alpha1.ConditionStalled: v.stalled} {
		if holds {
			set(kind, metav1.ConditionTrue)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, string(kind))
		}
	}
	slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int { return conditionOrder(a.Type) - conditionOrder(b.Type) })
	return s
}

func conditionOrder(kind string) int {
	return slices.Index([]v1alpha1.ConditionType{
		v1alpha1.ConditionReady, v1alpha1.ConditionPublished, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
	}, v1alpha1.ConditionType(kind))
}

// conditions is what the conditions say together.
type conditions struct {
	ready, published     metav1.ConditionStatus
	reconciling, stalled bool
	reason               v1alpha1.ConditionReason
	message              string
}

func verdict(last v1alpha1.HashRingStatus, d Decision, failure error) conditions {
	switch {
	case failure != nil:
		return conditions{
			ready: metav1.ConditionFalse, published: metav1.ConditionFalse, reconciling: true, reason: v1alpha1.ReasonPublishFailed,
			message: truncate(fmt.Sprintf("%v; it is tried again", failure)),
		}
	case d.Refusal != nil:
		return conditions{
			ready: metav1.ConditionFalse, published: metav1.ConditionFalse, stalled: true, reason: d.Refusal.Reason,
			message: truncate(d.Refusal.Message + "; " + lastGood(last, d)),
		}
	case d.Wait > 0:
		return conditions{
			ready: metav1.ConditionTrue, published: metav1.ConditionFalse, reconciling: true, reason: v1alpha1.ReasonCoalescing,
			message: "a newer ring waits for spec.publication.minInterval; " + lastGood(last, d),
		}
	default:
		return conditions{
			ready: metav1.ConditionTrue, published: metav1.ConditionTrue, reason: v1alpha1.ReasonRingPublished,
			message: fmt.Sprintf("revision %d is published in slot a", d.Publication.Revision),
		}
	}
}

// lastGood says what readers have in the meantime.
func lastGood(s v1alpha1.HashRingStatus, d Decision) string {
	switch {
	case s.Active == nil:
		return "no ring has been published yet"
	case d.LastGoodIntact:
		return fmt.Sprintf("revision %d stays published", s.Active.Revision)
	default:
		return fmt.Sprintf("revision %d was published, and has been edited or deleted since: it is restored when this is mended", s.Active.Revision)
	}
}

// describe fills in what the status says of the published ring.
func describe(s *v1alpha1.HashRingStatus, d Decision, now time.Time) {
	r, p := d.Desired.Ring, d.Publication
	publishedAt := metav1.NewMicroTime(now.Truncate(time.Microsecond))
	if published(*s, p, d.Desired) {
		publishedAt = s.Active.PublishedAt
	}
	s.Active = &v1alpha1.ActiveRing{
		Revision: p.Revision, Digest: r.Digest(), Slot: v1alpha1.SlotA, PublishedAt: publishedAt,
		Algorithm: activeAlgorithm(r.Algorithm()),
	}
	stats, views := r.Stats(), r.ViewBalances()
	s.Backends = &v1alpha1.BackendCounts{Total: int32(r.Len()), Placed: int32(stats.Backends), Drained: int32(d.Desired.Drained)}
	s.Snapshot = &v1alpha1.SnapshotSize{
		Points: int64(r.PointCount()), Bytes: int64(len(r.Snapshot())),
		BytesPerPoint: decimal(float64(len(r.Snapshot()))/float64(r.PointCount()), 2),
		Encoding:      r.Encoding(), Chunks: int32(len(r.Chunks())), BudgetUsed: budgetUsed(len(r.Snapshot()), d.Desired.Chunks),
	}
	s.Balance = &v1alpha1.Balance{
		MaxOverAverage:         decimal(stats.MaxOverAverage, 3),
		CoefficientOfVariation: decimal(stats.CV*100, 2) + "%",
		Predicted:              decimal(stats.PredictedCV*100, 2) + "%",
		WorstView:              worstView(views),
	}
	s.Routing = &v1alpha1.Routing{Generation: p.Generation, Digest: p.RoutingDigest}
	s.Warnings = fit(append(slices.Clone(d.Desired.Warnings), r.Warnings()...))
}

func activeAlgorithm(a ring.Algorithm) v1alpha1.ActiveAlgorithm {
	active := v1alpha1.ActiveAlgorithm{
		Version: v1alpha1.AlgorithmVersion(a.Version.String()), PointsPerWeight: int32(a.PointsPerWeight), WeightUnit: int32(a.WeightUnit),
	}
	if a.MaxImbalance > 0 {
		active.MaxImbalance = FormatImbalance(a.MaxImbalance)
	}
	return active
}

func worstView(views []ViewBalance) *v1alpha1.ViewBalance {
	if len(views) == 0 {
		return nil
	}
	return &v1alpha1.ViewBalance{Features: views[0].Features, MaxOverAverage: decimal(views[0].MaxOverAverage, 3)}
}

// budgetUsed rounds up: what does not fit any more has 101%.
func budgetUsed(bytes, chunks int) string {
	budget := chunks * ChunkBytes
	return strconv.Itoa((bytes*100+budget-1)/budget) + "%"
}

// decimal rounds by itself: the last binary digits of the statistics may differ between architectures.
func decimal(x float64, digits int) string {
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(x*scale)/scale, 'f', digits, 64)
}

// fit returns warnings as far as the status has room; the last one then counts the rest.
func fit(all []v1alpha1.Warning) []v1alpha1.Warning {
	var list []v1alpha1.Warning
	for i, w := range all[:min(len(all), maxWarnings)] {
		if i == maxWarnings-1 && len(all) > maxWarnings {
			w.Message = fmt.Sprintf("%s (and %d more warnings)", w.Message, len(all)-maxWarnings)
		}
		w.Message = truncate(w.Message)
		list = append(list, w)
	}
	return list
}

// truncate keeps a message within the schema's bound.
func truncate(message string) string {
	const dots = "…"
	if len(message) <= maxMessageBytes {
		return message
	}
	cut := maxMessageBytes - len(dots)
	for cut > 0 && message[cut]&0xc0 == 0x80 { // Not within a character.
		cut--
	}
	return message[:cut] + dots
}
