// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// fleetHolds are the holds of the consumers.
func (m machine) fleetHolds(s State, o Observation, now time.Time) []Hold {
	found := map[HoldType][]string{}
	if held := s.unwatched(o); held != "" {
		return []Hold{{Type: HoldNoConsumers, Detail: held}}
	}
	if s.At == RollingBack {
		if gone := s.unreached(o); len(gone) > 0 {
			found[HoldDatacenterUnreachable] = gone
		}
	} else {
		for _, name := range s.watched(o) {
			if !o.reachable(name) {
				found[HoldDatacenterUnreachable] = append(found[HoldDatacenterUnreachable], name)
			}
		}
	}
	if !s.Unconverged.IsZero() && now.Sub(s.Unconverged) > o.Spec.Acknowledgement.Deadline {
		found[HoldNotConverged] = []string{s.stale(o)}
	}
	if slices.Contains(o.datacenters(), "") && s.At == Preparing {
		// No stage can take them, and the old ring could not be retired in the end. That is better said before anything moves.
		found[HoldUnknownDatacenter] = []string{"consumers that do not say where they are"}
	}
	holds := list(found, HoldDatacenterUnreachable, HoldUnknownDatacenter, HoldNotConverged)
	switch {
	case !stepPlace(s.At):
	case s.Retirement():
		holds = append(holds, m.needed(s, o)...)
	case o.Spec.Limits.MaxTraffic < s.current(o.Spec).Traffic:
		detail := fmt.Sprintf("limits.maxTraffic is %d basis points, the step asks for %d", o.Spec.Limits.MaxTraffic, s.current(o.Spec).Traffic)
		holds = append(holds, Hold{Type: HoldLimited, Detail: detail})
	}
	return holds
}

// unwatched says why nobody is known who reads the rings, or one of them; "" where somebody is of each, or where that does not matter.
func (s State) unwatched(o Observation) string {
	switch {
	case s.At != Preparing && !stepPlace(s.At):
		return ""
	case o.Unasked:
		return "the consumers have not been asked yet"
	case len(o.datacenters()) == 0:
		return "there are no consumers"
	}
	var silent []string
	for _, r := range o.Rings {
		if !slices.ContainsFunc(o.Fleets, func(f Fleet) bool { return f.Ring == r.Name && f.Total > 0 }) {
			silent = append(silent, r.Name)
		}
	}
	if len(silent) > 0 { // Those of other rings say nothing about who reads it.
		return "there are no consumers of " + strings.Join(silent, ", ")
	}
	return ""
}

// needed says who needs the old ring: who came too late for a stage, and who is kept below the whole.
func needed(s State, o Observation) []Hold {
	found := map[HoldType][]string{}
	for _, name := range s.latecomers(o) {
		found[HoldUnknownDatacenter] = append(found[HoldUnknownDatacenter], fmt.Sprintf("%q", name))
	}
	under := o.Spec.Limits.limited(s.planned())
	for _, name := range s.watched(o) {
		if share, planned := under[name]; planned && share < whole {
			found[HoldLimited] = append(found[HoldLimited], fmt.Sprintf("%s is limited to %d basis points", name, share))
		}
	}
	return list(found, HoldUnknownDatacenter, HoldLimited)
}

// gateHolds are the holds of the gates: before the first step until each has returned data, and from when a step took effect.
func (m machine) gateHolds(s State, o Observation, now time.Time) []Hold {
	if s.Skipped || s.At != Preparing && !stepPlace(s.At) {
		return nil
	}
	found := map[HoldType][]string{}
	for _, g := range s.gates(o.Spec) {
		r := s.Gates[g.Name]
		unknown, failing := !r.Answered, r.Answered && r.Result == Fail
		if s.At != Preparing {
			settled := s.At == Soaking || s.At == AwaitingApproval || s.At == Complete
			unknown = settled && !m.passes(s, g, now) && (r.Result != Fail || !s.usable(g, now))
			failing = settled && !m.passes(s, g, now) && !unknown
		}
		if unknown {
			found[HoldGateUnknown] = append(found[HoldGateUnknown], fmt.Sprintf("%s: %s %s", g.Name, cmp.Or(r.Result, NoData), r.Detail))
		}
		if failing {
			found[HoldGateFailed] = append(found[HoldGateFailed], fmt.Sprintf("%s: %s", g.Name, r.Detail))
		}
	}
	return list(found, HoldGateUnknown, HoldGateFailed)
}
