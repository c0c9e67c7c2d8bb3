// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

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
	if d.Desired != nil && d.Wait == 0 && failure == nil {
		describe(&s, d, now)
	}
	if d.decided(failure) {
		describeMembers(&s, r.Status, d, failure == nil && d.Wait == 0, now)
	}
	setConditions(&s, r, d, failure, now)
	return s
}

// decided says that the decision was made from everything that it needs: not where the cluster could not be read.
func (d Decision) decided(failure error) bool {
	return failure == nil || d.Desired != nil || d.Refusal != nil
}

// holdUnknown says that spec was refused before anybody could look whether something is held: what was held then still is.
func (d Decision) holdUnknown() bool { return d.Refusal != nil && d.Members == nil && d.Hold == nil }

// describeMembers fills in who waits, what is held and what the candidate is. Where the ring of the decision was not carried out, or
// has not all of the members, whoever is due waits on.
func describeMembers(s *v1alpha1.HashRingStatus, last v1alpha1.HashRingStatus, d Decision, carriedOut bool, now time.Time) {
	if !d.holdUnknown() {
		s.Hold = d.Hold.status(last.Hold, now)
	}
	s.Candidate, s.Pending = describeCandidate(d), nil
	if d.Load != nil && d.Frozen == nil {
		s.LoadWeights = d.Load.status(last.LoadWeights, carriedOut, d.Hold != nil && d.Hold.Reason == v1alpha1.ReasonPinned)
	}
	if s.Backends != nil && d.Desired != nil {
		s.Backends.Down = int32(len(d.Desired.Down))
	}
	m := d.Members
	if m == nil { // Clocks go on while spec is refused, and begin anew when a pin is taken away.
		if d.Refusal == nil {
			s.Members = nil
		}
		return
	}
	carriedOut = carriedOut && m.Placed
	s.Members = m.Clocks
	if !carriedOut && len(m.Due) > 0 {
		s.Members = sorted(slices.Concat(m.Clocks, m.Due))
	}
	if s.Backends != nil {
		s.Backends.Joining, s.Backends.Leaving = count(s.Members, v1alpha1.MemberJoining), count(s.Members, v1alpha1.MemberLeaving)
		s.Backends.Reference = int32(m.Reference)
		if carriedOut { // What was removed is no part of what a later loss is measured against.
			s.Backends.Reference = int32(min(m.Reference, m.After))
		}
	}
	if m.PendingMoved != nil {
		s.Pending = &v1alpha1.PendingChange{Movement: percentOf(*m.PendingMoved), NextAt: metav1.NewTime(m.Next.Truncate(time.Second))}
	}
}

func count(clocks []v1alpha1.MemberTransition, state v1alpha1.MemberState) int32 {
	n := int32(0)
	for _, clock := range clocks {
		if clock.State == state {
			n++
		}
	}
	return n
}

func describeCandidate(d Decision) *v1alpha1.CandidateRing {
	if d.Candidate == nil {
		return nil
	}
	r := d.Candidate.Ring
	return &v1alpha1.CandidateRing{
		Revision: d.Candidate.Revision, Digest: r.Digest(), Algorithm: activeAlgorithm(r.Algorithm()),
		Movement: percentOf(d.Candidate.Moved), Reason: d.Candidate.Reason, Points: int64(r.PointCount()), Bytes: int64(len(r.Snapshot())),
		MaxOverAverage: decimal(r.Stats().MaxOverAverage, 3), Slot: v1alpha1.Slot(d.Candidate.Slot), WeightLost: d.Candidate.WeightLost,
	}
}

// describe fills in what the status says of the published ring.
func describe(s *v1alpha1.HashRingStatus, d Decision, now time.Time) {
	r, p := d.Desired.Ring, d.Publication
	publishedAt, movement := metav1.NewMicroTime(now.Truncate(time.Microsecond)), ""
	if published(*s, p, d.Desired) {
		publishedAt = s.Active.PublishedAt
	}
	switch {
	case d.Moved != nil:
		movement = percentOf(*d.Moved)
	case s.Active != nil && s.Active.Digest == r.Digest():
		movement = s.Active.Movement
	}
	s.Active = &v1alpha1.ActiveRing{
		Revision: p.Revision, Digest: r.Digest(), Slot: v1alpha1.Slot(d.Desired.slot()), PublishedAt: publishedAt, Movement: movement,
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
	s.Routing = &v1alpha1.Routing{Generation: p.Generation, Digest: p.RoutingDigest, LeaderEpoch: p.LeaderEpoch}
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
func truncate(message string) string { return truncateTo(message, maxMessageBytes) }

func truncateTo(message string, limit int) string {
	const dots = "…"
	if len(message) <= limit {
		return message
	}
	cut := limit - len(dots)
	for cut > 0 && message[cut]&0xc0 == 0x80 { // Not within a character.
		cut--
	}
	return message[:cut] + dots
}
