// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// TestReportPacer: counts wait for a second, a transition does not.
func TestReportPacer(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	ring.Status.Backends = &v1alpha1.BackendCounts{Total: 3}
	ring.Status.Conditions = []metav1.Condition{{Type: "Held", Status: "True", Message: "6 of 10"}}
	counts := *ring.Status.DeepCopy()
	counts.Backends.Down, counts.Backends.Joining, counts.Backends.Leaving = 1, 1, 1
	counts.Members = []v1alpha1.MemberTransition{{ID: "a"}}
	counts.Pending = &v1alpha1.PendingChange{}
	counts.Conditions[0].Message = "7 of 10"
	transition := *ring.Status.DeepCopy()
	transition.Conditions[0].Status = "False"

	var p reportPacer
	if got := p.wait(ring, counts, now); got != 0 {
		t.Errorf("the first write waits for %s", got)
	}
	p.wrote(ring, ring.Status, now)
	if got := p.wait(ring, counts, now.Add(300*time.Millisecond)); got != 700*time.Millisecond {
		t.Errorf("counts wait for %s", got)
	}
	if got := p.wait(ring, transition, now.Add(300*time.Millisecond)); got != 0 {
		t.Errorf("a transition waits for %s", got)
	}
	if got := p.wait(ring, counts, now.Add(time.Second)); got != 0 {
		t.Errorf("after a second it waits for %s", got)
	}
	if got := p.wait(ring, counts, now.Add(-time.Minute)); got != 0 {
		t.Errorf("with the clock turned back it waits for %s", got)
	}
	if got := ring.Status.Conditions[0].Message; got != "6 of 10" {
		t.Errorf("it changed the status: %s", got)
	}
	other := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{UID: "2"}}
	p.wrote(other, other.Status, now.Add(consumerBurst*consumerInterval))
	if len(p.last) != 1 {
		t.Errorf("%d rings are remembered, not the one that was written not long ago", len(p.last))
	}
}

// TestReportPacerChanges: what waits, and what is written at once however soon it comes.
func TestReportPacerChanges(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	conditions := func(ready, published string, more ...metav1.Condition) []metav1.Condition {
		return append([]metav1.Condition{
			{Type: "Ready", Status: "True", Reason: ready}, {Type: "Published", Status: "True", Reason: published},
			{Type: "Held", Status: "False", Reason: "NotHeld"},
		}, more...)
	}
	coalescing := func(s *v1alpha1.HashRingStatus) {
		s.Conditions = conditions("Coalescing", "Coalescing", metav1.Condition{Type: "Reconciling", Status: "True", Reason: "Coalescing"})
		s.Conditions[1].Status, s.Conditions[1].LastTransitionTime = "False", metav1.NewTime(now.Add(time.Hour))
	}
	for name, test := range map[string]struct {
		waits  bool
		change func(*v1alpha1.HashRingStatus)
	}{
		"reference":            {true, func(s *v1alpha1.HashRingStatus) { s.Backends.Reference++ }},
		"another candidate":    {true, func(s *v1alpha1.HashRingStatus) { s.Candidate.Digest, s.Candidate.Movement = "b", "2.00%" }},
		"coalescing":           {true, coalescing},
		"another reason":       {false, func(s *v1alpha1.HashRingStatus) { s.Candidate.Reason = v1alpha1.ReasonMovementBudget }},
		"no candidate":         {false, func(s *v1alpha1.HashRingStatus) { s.Candidate = nil }},
		"a revision":           {false, func(s *v1alpha1.HashRingStatus) { s.Active.Revision++ }},
		"a digest":             {false, func(s *v1alpha1.HashRingStatus) { s.Active.Digest = "x" }},
		"a routing generation": {false, func(s *v1alpha1.HashRingStatus) { s.Routing.Generation++ }},
		"a generation":         {false, func(s *v1alpha1.HashRingStatus) { coalescing(s); s.ObservedGeneration++ }},
		"a hold":               {false, func(s *v1alpha1.HashRingStatus) { s.Hold = &v1alpha1.Hold{Reason: v1alpha1.ReasonSuddenLoss} }},
		"a failure":            {false, func(s *v1alpha1.HashRingStatus) { s.Conditions = conditions("PublishFailed", "PublishFailed") }},
		"a refusal":            {false, func(s *v1alpha1.HashRingStatus) { s.Conditions = conditions("InvalidSpec", "InvalidSpec") }},
		"a refusal like a hold": {false, func(s *v1alpha1.HashRingStatus) {
			s.Conditions = conditions("BelowMinimum", "BelowMinimum")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Status: v1alpha1.HashRingStatus{
				ObservedGeneration: 1, Conditions: conditions("RingPublished", "RingPublished"),
				Active: &v1alpha1.ActiveRing{Revision: 1, Digest: "a"}, Routing: &v1alpha1.Routing{Generation: 1},
				Backends:  &v1alpha1.BackendCounts{Total: 10, Reference: 10},
				Candidate: &v1alpha1.CandidateRing{Digest: "a", Movement: "1.00%", Reason: v1alpha1.ReasonAlgorithmChanged},
			}}
			var p reportPacer
			p.wrote(ring, ring.Status, now)
			next := *ring.Status.DeepCopy()
			test.change(&next)
			if got := p.wait(ring, next, now.Add(time.Millisecond)) > 0; got != test.waits {
				t.Errorf("it waits: %t, want %t", got, test.waits)
			}
		})
	}
}

// TestReportPacerConsumers: what consumers have is written a few times at the pace of everything else, and then now and then, however
// often they say something else. What is true of the ring itself never waits for that.
func TestReportPacerConsumers(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	ring.Status.Active = &v1alpha1.ActiveRing{Revision: 1}
	ring.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "Applied", Status: "True", Reason: "AllConsumersCurrent"}}
	var p reportPacer
	writes := func(from, to time.Duration) (n int) {
		for now := began.Add(from); now.Before(began.Add(to)); now = now.Add(500 * time.Millisecond) {
			next := *ring.Status.DeepCopy()
			stale := int32(now.Sub(began)/time.Millisecond) + 1
			next.Consumers = &v1alpha1.ConsumerStatus{Stale: stale}
			next.Conditions[1] = metav1.Condition{Type: "Applied", Status: "False", Reason: []string{"DigestMismatch", "WaitingForConsumers"}[stale%2]}
			if p.wait(ring, next, now) == 0 {
				p.wrote(ring, next, now)
				ring.Status, n = next, n+1
			}
		}
		return n
	}
	if got := writes(0, 12*time.Second); got != consumerBurst {
		t.Errorf("%d writes at first", got)
	}
	if got := writes(12*time.Second, 612*time.Second); got != 20 {
		t.Errorf("%d writes in 10 minutes", got)
	}
	next := *ring.Status.DeepCopy()
	next.Members, next.Consumers.Stale = []v1alpha1.MemberTransition{{ID: "a"}}, 0
	if got := p.wait(ring, next, began.Add(612*time.Second)); got < 0 || got > reportInterval {
		t.Errorf("who is leaving waits for %s", got)
	}
	next.Members, next.Active.Revision = nil, 2
	if got := p.wait(ring, next, began.Add(612*time.Second)); got != 0 {
		t.Errorf("another revision waits for %s", got)
	}
	next.Active.Revision = 1
	if got := p.wait(ring, next, began.Add(612*time.Second)); got <= 0 || got > consumerInterval {
		t.Errorf("figures wait for %s", got)
	}
	if got := writes(1000*time.Second, 1012*time.Second); got != consumerBurst {
		t.Errorf("%d writes after a pause", got)
	}
}

// TestReportPacerHeld: under one hold, whether a change of routing.json waits is nothing that is written at once.
func TestReportPacerHeld(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	ring.Status.Hold = &v1alpha1.Hold{Reason: v1alpha1.ReasonSuddenLoss, Count: 6}
	ring.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: "SuddenLoss"}, {Type: "Stalled", Status: "True", Reason: "SuddenLoss"},
	}
	next := *ring.Status.DeepCopy()
	next.Conditions = []metav1.Condition{
		{Type: "Ready", Status: "True", Reason: "Coalescing"}, {Type: "Reconciling", Status: "True", Reason: "Coalescing"},
	}
	var p reportPacer
	p.wrote(ring, ring.Status, now)
	if p.wait(ring, next, now.Add(time.Millisecond)) == 0 {
		t.Error("coalescing under a hold does not wait")
	}
	next.Hold = nil
	if p.wait(ring, next, now.Add(time.Millisecond)) > 0 {
		t.Error("the end of a hold waits")
	}
}

// TestPublications: a publication is remembered for as long as the longest minInterval.
func TestPublications(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var p publications
	if got := p.at("1"); !got.IsZero() {
		t.Errorf("nothing was published at %s", got)
	}
	p.note("1", now)
	p.note("2", now.Add(maxMinInterval-1))
	if got := p.at("1"); got != now {
		t.Errorf("1 was published at %s", got)
	}
	p.note("3", now.Add(maxMinInterval))
	if got := p.at("1"); !got.IsZero() || len(p.last) != 2 {
		t.Errorf("1 is remembered for longer than any minInterval: %v", p.last)
	}
}
