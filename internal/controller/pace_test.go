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
	p.wrote(ring, now)
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
	p.wrote(other, now.Add(2*time.Second))
	if len(p.last) != 1 {
		t.Errorf("%d rings are remembered, not the one that was written within the second", len(p.last))
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
