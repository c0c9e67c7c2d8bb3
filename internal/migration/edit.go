// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
)

// adopt takes an edit of the plan, if it is valid and no bolder in what has begun.
func (s *State) adopt(spec Spec) {
	if len(s.Plan) > 0 && spec.Validate() == nil && s.boldness(spec) == "" {
		s.Plan = spec.Stages
	}
}

// boldness says why the plan of a spec cannot take the place of the one that runs: what has begun may only become more
// cautious. It returns "" where it can.
func (s State) boldness(spec Spec) string {
	if !stepPlace(s.At) {
		return ""
	}
	for i := range min(s.Stage+1, len(s.Plan)) {
		if i >= len(spec.Stages) {
			return fmt.Sprintf("stage %q has begun and is gone", s.Plan[i].Name)
		}
		steps := len(s.Plan[i].Steps)
		if i == s.Stage {
			steps = s.Step + 1
		}
		if why := bolder(s.Plan[i], spec.Stages[i], steps); why != "" {
			return fmt.Sprintf("stage %q has begun: %s", s.Plan[i].Name, why)
		}
	}
	if s.Retirement() && len(spec.Stages) > len(s.Plan) {
		return "the last stage is done and there is another one"
	}
	return ""
}

// bolder compares the first steps of a stage with those that are to replace them.
func bolder(have, want Stage, steps int) string {
	if have.Name != want.Name || have.Remainder != want.Remainder || !slices.Equal(have.Datacenters, want.Datacenters) {
		return "its name or datacenters differ"
	}
	if len(want.Steps) < steps {
		return fmt.Sprintf("step %d is gone", len(want.Steps)+1)
	}
	for i, step := range have.Steps[:steps] {
		other := want.Steps[i]
		switch {
		case other.Traffic > step.Traffic:
			return fmt.Sprintf("traffic of step %d is raised", i+1)
		case other.Soak < step.Soak:
			return fmt.Sprintf("soak of step %d is shorter", i+1)
		case step.Approval && !other.Approval:
			return fmt.Sprintf("step %d needs no approval any more", i+1)
		case !covers(other.Gates, step.Gates):
			return fmt.Sprintf("step %d has fewer gates", i+1)
		}
	}
	return ""
}

// covers says whether gates have all others; no gates are all of them.
func covers(gates, others []string) bool {
	if len(gates) == 0 || len(others) == 0 {
		return len(gates) == 0
	}
	return !slices.ContainsFunc(others, func(name string) bool { return !slices.Contains(gates, name) })
}
