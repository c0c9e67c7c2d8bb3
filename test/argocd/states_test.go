// SPDX-License-Identifier: Apache-2.0

package argocd_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// state is a state that a HashRing can be in, and what Argo CD and kstatus are to make of it.
type state struct {
	name string
	// ring has the status that package plan gives it.
	ring *v1alpha1.HashRing
	// ready is the reason of condition Ready; "" where there is none.
	ready v1alpha1.ConditionReason
	// argo is the health in Argo CD, kstatus the status there.
	argo, kstatus string
	// message is a part of what Argo CD shows.
	message string
}

// decided makes a state of a decision.
func decided(t *testing.T, name string, d plan.Decision, failure error) state {
	t.Helper()
	ring := newRing()
	ring.Status = plan.Status(ring, d, failure, time.Unix(1_800_000_000, 0))
	return state{name: name, ring: ring}
}

func (s state) as(ready v1alpha1.ConditionReason, argo, kstatus, message string) state {
	s.ready, s.argo, s.kstatus, s.message = ready, argo, kstatus, message
	return s
}

func newRing() *v1alpha1.HashRing {
	ring := &v1alpha1.HashRing{Spec: v1alpha1.HashRingSpec{
		Algorithm: v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV2, PointsPerWeight: 16},
		Identity:  v1alpha1.IdentityAddress,
		Backends: []v1alpha1.Backend{
			{Name: "a", Address: "10.0.0.1", Port: ptr.To[int32](80)}, {Name: "b", Address: "10.0.0.2", Port: ptr.To[int32](80)},
		},
	}}
	ring.Namespace, ring.Name, ring.Generation = "cdn", "edge", 3
	ring.Status.ObservedGeneration = -1
	return ring
}

// published is the decision for a ring that is in the cluster as spec asks for.
func published(t *testing.T) plan.Decision {
	t.Helper()
	d := plan.Decide(newRing(), plan.Afresh{}, plan.Observation{}, time.Unix(1_800_000_000, 0))
	if d.Refusal != nil {
		t.Fatal(d.Refusal)
	}
	return d
}

func refused(reason v1alpha1.ConditionReason) plan.Decision {
	return plan.Decision{Refusal: &plan.Refusal{Reason: reason, Message: "what is wrong"}}
}

// sourced is the decision for a ring of a Service without pods; nil for one that does not exist.
func sourced(service *plan.Service) plan.Decision {
	r := newRing()
	r.Spec.Backends, r.Spec.BackendsFrom = nil, []v1alpha1.BackendSource{{Service: v1alpha1.ServicePort{Name: "cache"}}}
	return plan.Decide(r, plan.Afresh{}, plan.Observation{Sources: []plan.BackendSource{{Service: service}}}, time.Unix(1_800_000_000, 0))
}

// states are all states.
func states(t *testing.T) []state {
	t.Helper()
	list := []state{
		{name: "made just now", ring: newRing(), argo: "Progressing", kstatus: "InProgress", message: "has not looked at this generation yet"},
	}
	stale := decided(t, "spec has changed since", published(t), nil)
	stale.ring.Generation++
	list = append(list, stale.as(v1alpha1.ReasonRingPublished, "Progressing", "InProgress", "has not looked at this generation yet"))
	for _, reason := range []v1alpha1.ConditionReason{
		v1alpha1.ReasonNoBackends, v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonDuplicateIdentity, v1alpha1.ReasonSnapshotTooLarge,
		v1alpha1.ReasonNameConflict, v1alpha1.ReasonRevisionNotFound, v1alpha1.ReasonBelowMinimum, v1alpha1.ReasonMigrationInProgress,
	} {
		s := decided(t, "refused for "+string(reason), refused(reason), nil)
		list = append(list, s.as(reason, "Degraded", "Failed", string(reason)+": what is wrong; no ring has been published yet"))
	}
	return append(append(list,
		decided(t, "the first ring waits for a Service", sourced(nil), nil).as(v1alpha1.ReasonSourcesUnread, "Progressing", "InProgress", "SourcesUnread: "),
		decided(t, "the first ring waits for pods", sourced(&plan.Service{Ports: []plan.Port{{Number: 80}}}), nil).
			as(v1alpha1.ReasonNoBackends, "Progressing", "InProgress", "NoBackends: "),
		decided(t, "a write failed", published(t), errors.New("connection refused")).
			as(v1alpha1.ReasonPublishFailed, "Progressing", "InProgress", "PublishFailed: connection refused; it is tried again"),
		decided(t, "the cluster cannot be read", plan.Decision{}, errors.New("connection refused")).
			as(v1alpha1.ReasonPublishFailed, "Progressing", "InProgress", "PublishFailed: connection refused"),
	), publishedStates(t)...)
}

// publishedStates are those of rings that readers have.
func publishedStates(t *testing.T) []state {
	t.Helper()
	with := func(change func(d *plan.Decision)) plan.Decision {
		d := published(t)
		change(&d)
		return d
	}
	held := func(reason v1alpha1.ConditionReason, blocks bool) plan.Decision {
		return with(func(d *plan.Decision) {
			d.Hold = &plan.Hold{Reason: reason, Message: "why it is held", Backends: []string{"10.0.0.1:80"}, Token: "t", Blocks: blocks}
		})
	}
	waiting := func(d plan.Decision, reason v1alpha1.ConditionReason) plan.Decision {
		d.Candidate = &plan.Candidate{Ring: d.Desired.Ring, Reason: reason, Moved: 1 << 28}
		return d
	}
	const moves = "6.25% of the key space"
	const current = "Current"
	list := []state{
		decided(t, "published", published(t), nil).as(v1alpha1.ReasonRingPublished, "Healthy", current, "RingPublished: revision 1 is published in slot a"),
		decided(t, "on its way", with(func(d *plan.Decision) { d.Wait = time.Second }), nil).
			as(v1alpha1.ReasonCoalescing, "Progressing", "InProgress", "Coalescing: a newer ring waits"),
		decided(t, "held for a sudden loss", held(v1alpha1.ReasonSuddenLoss, true), nil).
			as(v1alpha1.ReasonSuddenLoss, "Degraded", "Failed", "SuddenLoss: why it is held"),
		decided(t, "held, and nothing was to be removed yet", held(v1alpha1.ReasonSuddenLoss, false), nil).
			as(v1alpha1.ReasonRingPublished, "Healthy", current, "is published in slot a; SuddenLoss: why it is held"),
		decided(t, "held for too few", held(v1alpha1.ReasonBelowMinimum, true), nil).
			as(v1alpha1.ReasonBelowMinimum, "Degraded", "Failed", "BelowMinimum: why it is held"),
		decided(t, "pinned", held(v1alpha1.ReasonPinned, true), nil).
			as(v1alpha1.ReasonPinned, "Suspended", current, "Pinned: why it is held"),
		decided(t, "another algorithm waits", waiting(published(t), v1alpha1.ReasonAlgorithmChanged), nil).
			as(v1alpha1.ReasonCandidateWaiting, "Healthy", current, moves),
		decided(t, "too much would move", waiting(held(v1alpha1.ReasonMovementBudget, true), v1alpha1.ReasonMovementBudget), nil).
			as(v1alpha1.ReasonCandidateWaiting, "Healthy", current, moves),
		decided(t, "a candidate waits behind a loss", waiting(held(v1alpha1.ReasonSuddenLoss, true), v1alpha1.ReasonAlgorithmChanged), nil).
			as(v1alpha1.ReasonSuddenLoss, "Degraded", "Failed", "SuddenLoss: why it is held"),
	}
	for _, reason := range []v1alpha1.ConditionReason{
		v1alpha1.ReasonServiceNotFound, v1alpha1.ReasonPortNotFound, v1alpha1.ReasonInvalidWeight, v1alpha1.ReasonMissingIdentity,
		v1alpha1.ReasonPodNotFound,
	} {
		d := with(func(d *plan.Decision) { d.Problems = []plan.Problem{{Reason: reason, Message: "of a source"}} })
		list = append(list, decided(t, "published in spite of "+string(reason), d, nil).
			as(v1alpha1.ReasonRingPublished, "Healthy", current, "RingPublished: "))
	}
	return append(append(list, readStates(t)...), touchedStates(t)...)
}

// readStates are those of rings that are published, whatever their readers have: they may take their time, and Argo CD must not
// wait for them, nor call a ring bad that is good.
func readStates(t *testing.T) []state {
	t.Helper()
	reading := func(name string, known *plan.Consumers, applied v1alpha1.ConditionReason) state {
		t.Helper()
		ring := newRing()
		ring.Spec.Consumers = &v1alpha1.Consumers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "edge"}}}
		now := time.Unix(1_800_000_000, 0)
		ring.Status = plan.Status(ring, plan.Decide(ring, plan.Afresh{}, plan.Observation{Consumers: known}, now), nil, now)
		condition := meta.FindStatusCondition(ring.Status.Conditions, string(v1alpha1.ConditionApplied))
		if got := reasonOf(condition); got != applied {
			t.Fatalf("%s: Applied has reason %q, want %q", name, got, applied)
		}
		return state{name: name, ring: ring}.as(v1alpha1.ReasonRingPublished, "Healthy", "Current", "RingPublished: revision 1 is published in slot a")
	}
	d := published(t)
	has := plan.Answer{Ready: true, Asked: plan.AskedBy(d.Publication.File)}
	other := has
	other.Stable = "sha256:00"
	consumers := func(said plan.Answer) *plan.Consumers {
		return &plan.Consumers{List: []plan.Consumer{{Pod: "edge-1", Said: &said}}}
	}
	return []state{
		reading("its readers were not asked yet", nil, v1alpha1.ReasonWaitingForConsumers),
		reading("a reader lags", consumers(plan.Answer{}), v1alpha1.ReasonWaitingForConsumers),
		reading("a reader is away", &plan.Consumers{List: []plan.Consumer{{Pod: "edge-1", Failure: "no answer"}}}, v1alpha1.ReasonWaitingForConsumers),
		reading("a reader has another snapshot", consumers(other), v1alpha1.ReasonDigestMismatch),
		reading("its readers have it", consumers(has), v1alpha1.ReasonAllConsumersCurrent),
		reading("nobody reads it", &plan.Consumers{}, v1alpha1.ReasonNoConsumersFound),
		reading("its selector of readers is none", &plan.Consumers{Invalid: "no"}, v1alpha1.ReasonInvalidSelector),
	}
}

// touchedStates are those of rings whose readers are touched, which changes how fast they are and nothing else.
func touchedStates(t *testing.T) []state {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	touching := func(name string, refresh func(mark string) plan.Refresh, refreshed v1alpha1.ConditionReason) state {
		t.Helper()
		ring := newRing()
		ring.Spec.Consumers = &v1alpha1.Consumers{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "edge"}}, Refresh: v1alpha1.RefreshTouchPods,
		}
		d := plan.Decide(ring, plan.Afresh{}, plan.Observation{}, now)
		known := refresh(plan.TouchMark(plan.Status(ring, d, nil, now)))
		d.Refresh = &known
		ring.Status = plan.Status(ring, d, nil, now)
		condition := meta.FindStatusCondition(ring.Status.Conditions, string(v1alpha1.ConditionRefreshed))
		if got := reasonOf(condition); got != refreshed {
			t.Fatalf("%s: Refreshed has reason %q, want %q", name, got, refreshed)
		}
		return state{name: name, ring: ring}.as(v1alpha1.ReasonRingPublished, "Healthy", "Current", "RingPublished: revision 1 is published in slot a")
	}
	pod := plan.Mounting{Name: "edge-1", Made: now.Add(-time.Hour)}
	pods := func(change func(p *plan.Mounting, mark string)) func(string) plan.Refresh {
		return func(mark string) plan.Refresh {
			p := pod
			change(&p, mark)
			return plan.Refresh{Pods: []plan.Mounting{p}}
		}
	}
	return []state{
		touching("a pod is still to be touched", pods(func(*plan.Mounting, string) {}), v1alpha1.ReasonTouchingPods),
		touching("its pods were touched", pods(func(p *plan.Mounting, mark string) { p.Mark = mark }), v1alpha1.ReasonAllPodsTouched),
		touching("a pod refused", pods(func(p *plan.Mounting, mark string) { p.Refusal, p.RefusedMark = "no", mark }), v1alpha1.ReasonPodsRefused),
		touching("no pod mounts it", func(string) plan.Refresh { return plan.Refresh{} }, v1alpha1.ReasonNoPodsFound),
		touching("pods may not be touched", func(string) plan.Refresh { return plan.Refresh{Forbidden: "no"} }, v1alpha1.ReasonTouchForbidden),
	}
}
