// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"time"
)

// gates returns the enforced gates of the present step; all of them before the first step and before retirement.
func (s State) gates(spec Spec) []Gate {
	var names []string
	if stepPlace(s.At) && !s.Retirement() {
		names = s.current(spec).Gates
	}
	return slices.DeleteFunc(slices.Clone(spec.Gates), func(g Gate) bool {
		return !g.Enforced || len(names) > 0 && !slices.Contains(names, g.Name)
	})
}

// measure takes the measurements that are newer than those before. A result that comes late, or again, counts once. Failures
// are of the gates that judge the step: before any key moves there is nothing that the candidate could have harmed.
func (s *State) measure(o Observation, now time.Time) {
	for _, g := range o.Spec.Gates {
		record := s.Gates[g.Name]
		i := slices.IndexFunc(o.Measurements, func(m Measurement) bool { return m.Gate == g.Name })
		if i >= 0 && o.Measurements[i].At.After(record.At) {
			record.Measurement = o.Measurements[i]
			switch record.Result {
			case Fail:
				record.Answered = true
				if judges := s.gates(o.Spec); stepPlace(s.At) && slices.ContainsFunc(judges, func(j Gate) bool { return j.Name == g.Name }) {
					record.Failures = append(slices.Clone(record.Failures), record.At)
				}
			case Pass, Inconclusive:
				record.Answered = true
			}
		}
		recent := slices.DeleteFunc(slices.Clone(record.Failures), func(at time.Time) bool { return now.Sub(at) > g.FailureWindow })
		record.Failures = recent[max(len(recent)-g.FailureThreshold, 0):]
		if s.Gates == nil {
			s.Gates = map[string]GateRecord{}
		}
		s.Gates[g.Name] = record
	}
}

// passes says whether a gate has said Pass since the step took effect, and lately.
func passes(s State, g Gate, now time.Time) bool {
	return s.Gates[g.Name].Result == Pass && s.usable(g, now)
}

// usable says whether the last measurement of a gate is one of the present step, and not too old to say anything.
func (s State) usable(g Gate, now time.Time) bool {
	at := s.Gates[g.Name].At
	return !at.IsZero() && !at.Before(s.Effective) && now.Sub(at) <= 2*g.Interval
}

// failed returns the first gate that has failed often enough to say that the candidate does harm, and how; nil where none has.
func (s State) failed(spec Spec) (*Gate, string) {
	for _, g := range s.gates(spec) {
		if r := s.Gates[g.Name]; len(r.Failures) > 0 && len(r.Failures) >= g.FailureThreshold {
			return &g, fmt.Sprintf("%s failed %d times within %s: %s", g.Name, len(r.Failures), g.FailureWindow, r.Detail)
		}
	}
	return nil, ""
}

// account credits the soak.
func (m machine) account(s *State, o Observation, now time.Time) {
	if s.At != Soaking {
		return
	}
	if !m.clean(*s, o, now) {
		s.Soak.Clean = time.Time{}
		return
	}
	s.Soak.Credited += m.credit(*s, o, now)
	s.Soak.Clean = now
}

// clean says whether nothing holds, all consumers have the split, and all gates pass. A deletion that freezes leaves nobody to
// go on.
func (m machine) clean(s State, o Observation, now time.Time) bool {
	if len(s.Holds) > 0 || o.Deleted || !m.complete(s, o) {
		return false
	}
	return !slices.ContainsFunc(s.gates(o.Spec), func(g Gate) bool { return !m.passes(s, g, now) })
}

// credit is the time since the last observation, if that was clean too. Of a time in which nobody watched it is no more than
// two intervals, and of a clock that goes back it is nothing.
func credit(s State, o Observation, now time.Time) time.Duration {
	if s.Soak.Clean.IsZero() {
		return 0
	}
	return min(max(now.Sub(s.Soak.Clean), 0), 2*o.Spec.Interval)
}

func soaked(s State, spec Spec) bool { return s.Soak.Credited >= s.current(spec).Soak }
