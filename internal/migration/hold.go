// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// HoldType is what keeps a migration from going forward. None of them keeps it from going back.
type HoldType string

// The holds, in the order in which they are listed.
const (
	HoldInvalidPlan HoldType = "InvalidPlan"
	// HoldPlanDrift means that the plan was edited where it has begun; the one before is followed.
	HoldPlanDrift   HoldType = "PlanDrift"
	HoldSuspended   HoldType = "Suspended"
	HoldPaused      HoldType = "Paused"
	HoldNoCandidate HoldType = "NoCandidate"
	// HoldLocked means that another migration has a ring.
	HoldLocked HoldType = "Locked"
	// HoldForeignSplit means that a ring is published with a split that is not ours, such as that of one which was deleted and frozen.
	HoldForeignSplit HoldType = "ForeignSplit"
	// HoldRingDrift means that too much of the weight has left, or that a ring or its candidate is another one.
	HoldRingDrift HoldType = "RingDrift"
	// HoldNoConsumers means that nobody is known who reads the rings, or one of them.
	HoldNoConsumers           HoldType = "NoConsumers"
	HoldDatacenterUnreachable HoldType = "DatacenterUnreachable"
	HoldUnknownDatacenter     HoldType = "UnknownDatacenter"
	HoldLimited               HoldType = "Limited"
	HoldNotConverged          HoldType = "NotConverged"
	HoldGateUnknown           HoldType = "GateUnknown"
	HoldGateFailed            HoldType = "GateFailed"
	HoldAwaitingApproval      HoldType = "AwaitingApproval"
)

// maxDrift is the part of the weight, in basis points, that may leave while a migration runs.
const maxDrift = 1000

// Hold is one cause. There is at most one of a type.
type Hold struct {
	Type   HoldType
	Since  time.Time
	Detail string
}

// EndedBy says who can end a hold, and how.
func (t HoldType) EndedBy() string { return endedBy[t] }

var endedBy = map[HoldType]string{
	HoldInvalidPlan:           "whoever edits spec: correct the plan",
	HoldPlanDrift:             "whoever edits spec: take the edit back, or roll back and begin another attempt",
	HoldSuspended:             "whoever edits spec: suspend: false",
	HoldPaused:                "whoever may pause: Resume",
	HoldNoCandidate:           "whoever edits the HashRing: a change of its algorithm makes a candidate",
	HoldLocked:                "the other migration, when it ends",
	HoldForeignSplit:          "whoever may roll back: Rollback takes the split to 0, and Retry begins from there",
	HoldRingDrift:             "itself when the backends are back; whoever may roll back: Rollback",
	HoldNoConsumers:           "itself when consumers have been asked; whoever edits the HashRing: spec.consumers",
	HoldDatacenterUnreachable: "itself when its consumers answer; whoever edits spec: limits.excludedDatacenters",
	HoldUnknownDatacenter:     "itself when its consumers leave, or say where they are; whoever may override: Skip takes those with a name along; whoever may roll back: another attempt",
	HoldLimited:               "whoever edits spec: limits",
	HoldNotConverged:          "itself when the consumers have the routing file; whoever runs them",
	HoldGateUnknown:           "itself when the gate has data; whoever may override: Skip, once the step soaks",
	HoldGateFailed:            "itself when the gate passes; whoever may roll back: Rollback",
	HoldAwaitingApproval:      "whoever may approve: Approve or Reject",
}

// holds lists everything that holds, each since when it does.
func (m machine) holds(s State, o Observation, now time.Time) []Hold {
	if s.At == Succeeded || s.At == RolledBack {
		return nil
	}
	list := slices.Concat(s.asked(o), s.rings(o), m.fleetHolds(s, o, now), m.gateHolds(s, o, now))
	for i, h := range list {
		list[i].Since = now
		if j := slices.IndexFunc(s.Holds, func(old Hold) bool { return old.Type == h.Type }); j >= 0 {
			list[i].Since = s.Holds[j].Since
		}
	}
	return list
}

// asked are the holds that somebody asks for.
func (s State) asked(o Observation) []Hold {
	var list []Hold
	if err := o.Spec.Validate(); err != nil {
		list = append(list, Hold{Type: HoldInvalidPlan, Detail: err.Error()})
	} else if why := s.boldness(o.Spec); why != "" {
		list = append(list, Hold{Type: HoldPlanDrift, Detail: why})
	}
	if o.Spec.Suspended {
		list = append(list, Hold{Type: HoldSuspended, Detail: "spec.suspend is true"})
	}
	if s.Paused != nil {
		list = append(list, Hold{Type: HoldPaused, Detail: "by " + s.Paused.Actor})
	}
	if s.At == AwaitingApproval && s.current(o.Spec).Approval && !s.Approved && !s.Skipped {
		list = append(list, Hold{Type: HoldAwaitingApproval, Detail: "token " + s.Token()})
	}
	return list
}

// rings are the holds of the rings.
func (s State) rings(o Observation) []Hold {
	found := map[HoldType][]string{}
	add := func(t HoldType, format string, args ...any) {
		found[t] = append(found[t], fmt.Sprintf(format, args...))
	}
	if len(o.Rings) == 0 {
		add(HoldNoCandidate, "there is no HashRing")
	}
	for _, r := range o.Rings {
		if s.At != Pending && r.Holder != o.Self && (r.Holder != "" || s.At != Queued) {
			add(HoldLocked, "%s: the lock has %s", r.Name, cmp.Or(r.Holder, "nobody"))
		}
		switch s.At {
		case Pending, Queued:
			if r.Candidate == "" {
				add(HoldNoCandidate, "%s has no candidate", r.Name)
			}
			continue
		case Retiring, RollingBack:
			continue
		}
		if r.Candidate != s.Candidates[r.Name] {
			add(HoldRingDrift, "%s: its candidate is another one", r.Name)
		}
		if r.Drift > maxDrift {
			add(HoldRingDrift, "%s: %d basis points of the weight have left, the limit is %d", r.Name, r.Drift, maxDrift)
		}
		if s.At == Preparing && !r.Published.Split.zero() {
			add(HoldForeignSplit, "%s", r.Name)
		}
	}
	for name := range s.Candidates {
		if o.ring(name) == nil {
			add(HoldRingDrift, "%s: it is gone", name)
		}
	}
	return list(found, HoldNoCandidate, HoldLocked, HoldForeignSplit, HoldRingDrift)
}

// list makes holds of details, in an order of types.
func list(found map[HoldType][]string, types ...HoldType) []Hold {
	var holds []Hold
	for _, t := range types {
		if details := found[t]; len(details) > 0 {
			slices.Sort(details)
			holds = append(holds, Hold{Type: t, Detail: strings.Join(details[:min(len(details), maxShownDetails)], "; ")})
		}
	}
	return holds
}
