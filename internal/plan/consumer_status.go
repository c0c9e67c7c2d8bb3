// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

// The schema's bounds of status.consumers.
const (
	maxStalePods         = 10
	maxStaleMessageBytes = 256
	maxDatacenters       = routing.MaxDatacenters
)

// stalePodsNamed is how many pods the message of condition Applied names.
const stalePodsNamed = 3

// applied is what condition Applied says.
type applied struct {
	status  metav1.ConditionStatus
	reason  v1alpha1.ConditionReason
	message string
	// kept says that the condition stays as it is.
	kept bool
}

// setApplied sets condition Applied and status.consumers. What is not known, because the cluster could not be read or written or
// because the consumers have not been asked since the operator was started, stays as it was, but is never taken for knowledge of
// another routing generation than its own.
func (c conditionSetter) setApplied(s *v1alpha1.HashRingStatus, r *v1alpha1.HashRing, d Decision, failure error) {
	var a applied
	s.Consumers, a = acknowledged(s.Consumers, r, d, failure)
	if a.kept {
		c.keep(v1alpha1.ConditionApplied, metav1.ConditionUnknown, v1alpha1.ReasonPublishFailed, unread)
		return
	}
	c.set(v1alpha1.ConditionApplied, a.status, a.reason, a.message)
}

func acknowledged(last *v1alpha1.ConsumerStatus, r *v1alpha1.HashRing, d Decision, failure error) (*v1alpha1.ConsumerStatus, applied) {
	waiting := func(message string) applied {
		return applied{status: metav1.ConditionFalse, reason: v1alpha1.ReasonWaitingForConsumers, message: message}
	}
	asked, seen := d.consumers.asked, d.consumers.seen
	switch {
	case r.Spec.Consumers == nil:
		return nil, applied{
			status: metav1.ConditionUnknown, reason: v1alpha1.ReasonNoConsumersDeclared, message: "spec.consumers says of no pods that they read the ring",
		}
	case failure != nil:
		return last, applied{kept: true}
	case seen != nil && seen.Invalid != "":
		return nil, applied{status: metav1.ConditionFalse, reason: v1alpha1.ReasonInvalidSelector, message: "spec.consumers.selector: " + seen.Invalid}
	case asked == nil:
		return nil, waiting("nothing is published that consumers could have")
	case seen == nil && last == nil:
		return nil, waiting("the consumers have not been asked yet")
	case seen == nil && r.Status.ObservedGeneration != r.Generation: // It can be another selector.
		return last, waiting("spec has changed, and the consumers have not been asked since")
	case seen == nil && last.Generation == asked.Generation:
		return last, applied{kept: true}
	case seen == nil:
		return unasked(*last, asked.Generation), waiting(fmt.Sprintf("routing generation %d is published, and the consumers have not been asked yet", asked.Generation))
	}
	status := countConsumers(*asked, seen.List)
	return status, verdictOf(*status, *asked, seen.List)
}

// verdictOf says what condition Applied makes of the figures.
func verdictOf(s v1alpha1.ConsumerStatus, asked Asked, list []Consumer) applied {
	a := applied{status: metav1.ConditionFalse, reason: v1alpha1.ReasonWaitingForConsumers}
	switch {
	case s.Total == 0:
		a.status, a.reason = metav1.ConditionUnknown, v1alpha1.ReasonNoConsumersFound
		a.message = "spec.consumers selects no pod"
	case s.Mismatched > 0:
		a.reason = v1alpha1.ReasonDigestMismatch
		a.message = fmt.Sprintf("%d of %d consumers have routing generation %d with another snapshot than the published one: %s",
			s.Mismatched, s.Total, s.Generation, nameStale(asked, list, v1alpha1.StaleDigestMismatch))
	case s.Stale > 0:
		a.message = fmt.Sprintf("%d of %d consumers have routing generation %d; stale: %s", s.Current, s.Total, s.Generation, nameStale(asked, list, ""))
	default:
		a.status, a.reason = metav1.ConditionTrue, v1alpha1.ReasonAllConsumersCurrent
		a.message = fmt.Sprintf("all %d consumers have routing generation %d", s.Total, s.Generation)
		if s.Total == 1 {
			a.message = fmt.Sprintf("the one consumer has routing generation %d", s.Generation)
		}
	}
	return a
}

// nameStale names the first stale consumers, those with a reason where it is not "".
func nameStale(asked Asked, list []Consumer, only v1alpha1.StaleReason) string {
	var names []string
	more := 0
	for _, consumer := range list {
		reason, _ := asked.Judge(consumer)
		switch {
		case reason == "" || only != "" && reason != only:
		case len(names) == stalePodsNamed:
			more++
		default:
			names = append(names, fmt.Sprintf("%s (%s)", consumer.Pod, reason))
		}
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// unasked returns figures that were counted for another generation: nobody is known to have this one.
func unasked(last v1alpha1.ConsumerStatus, generation int64) *v1alpha1.ConsumerStatus {
	s := &v1alpha1.ConsumerStatus{Generation: generation, Total: last.Total, Stale: last.Total}
	for _, dc := range last.Datacenters {
		s.Datacenters = append(s.Datacenters, v1alpha1.DatacenterConsumers{Name: dc.Name, Total: dc.Total})
	}
	return s
}

// countConsumers sums up what is known of the consumers, which are in the order of their names.
func countConsumers(asked Asked, list []Consumer) *v1alpha1.ConsumerStatus {
	s := &v1alpha1.ConsumerStatus{Generation: asked.Generation, Total: int32(len(list))}
	datacenters := map[string]*v1alpha1.DatacenterConsumers{}
	for _, consumer := range list {
		reason, message := asked.Judge(consumer)
		countDatacenter(asked, consumer, reason == "", datacenters)
		if reason == "" {
			s.Current++
			continue
		}
		countStale(s, reason)
		if len(s.StalePods) < maxStalePods {
			s.StalePods = append(s.StalePods, stalePod(asked, consumer, reason, message))
		}
	}
	s.Datacenters = listDatacenters(datacenters)
	return s
}

func countStale(s *v1alpha1.ConsumerStatus, reason v1alpha1.StaleReason) {
	s.Stale++
	switch reason {
	case v1alpha1.StaleUnreachable:
		s.Unreachable++
	case v1alpha1.StaleDigestMismatch:
		s.Mismatched++
	case v1alpha1.StaleOverridden:
		s.Overridden++
	}
}

func stalePod(asked Asked, c Consumer, reason v1alpha1.StaleReason, message string) v1alpha1.StalePod {
	pod := v1alpha1.StalePod{Name: c.Pod, Reason: reason, Message: truncateTo(message, maxStaleMessageBytes)}
	if c.Said != nil {
		pod.Datacenter = c.Said.Datacenter
		if c.Said.Ring == asked.Ring && c.Said.UID == asked.UID {
			pod.Generation = c.Said.Generation
		}
	}
	return pod
}

// countDatacenter counts a consumer where it said last that it runs. What it has counts only where it still answers.
func countDatacenter(asked Asked, c Consumer, current bool, datacenters map[string]*v1alpha1.DatacenterConsumers) {
	name := ""
	if c.Said != nil {
		name = c.Said.Datacenter
	}
	dc := datacenters[name]
	if dc == nil {
		dc = &v1alpha1.DatacenterConsumers{Name: name}
		datacenters[name] = dc
	}
	dc.Total++
	if current {
		dc.Current++
	}
	if c.Said == nil || c.Failure != "" || c.Waits != "" || c.Said.Ring != asked.Ring || c.Said.UID != asked.UID {
		return
	}
	if c.Said.Stable == asked.Stable {
		dc.Stable++
	}
	if asked.Candidate != "" && c.Said.Candidate == asked.Candidate {
		dc.Candidate++
	}
}

// listDatacenters returns those with the most consumers as far as the status has room, in the order of their names.
func listDatacenters(datacenters map[string]*v1alpha1.DatacenterConsumers) []v1alpha1.DatacenterConsumers {
	var list []v1alpha1.DatacenterConsumers
	for _, name := range slices.Sorted(maps.Keys(datacenters)) {
		list = append(list, *datacenters[name])
	}
	if len(list) > maxDatacenters {
		slices.SortStableFunc(list, func(a, b v1alpha1.DatacenterConsumers) int { return cmp.Compare(b.Total, a.Total) })
		list = list[:maxDatacenters]
		slices.SortFunc(list, func(a, b v1alpha1.DatacenterConsumers) int { return strings.Compare(a.Name, b.Name) })
	}
	return list
}
