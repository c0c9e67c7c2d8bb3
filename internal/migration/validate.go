// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"slices"
)

// MaxStages and MaxSteps limit a plan.
const (
	MaxStages = 32
	MaxSteps  = 16
)

// Validate says what is wrong with a spec; nil where nothing is.
func (s Spec) Validate() error {
	if s.Problem != "" {
		return errors.New(s.Problem)
	}
	if n := len(s.Stages); n < 1 || n > MaxStages {
		return fmt.Errorf("stages: %d stages, not 1 to %d", n, MaxStages)
	}
	stageOf := map[string]string{}
	for i, stage := range s.Stages {
		if err := stage.validate(i == len(s.Stages)-1, s.Gates); err != nil {
			return fmt.Errorf("stages[%d] %q: %w", i, stage.Name, err)
		}
		for _, name := range stage.Datacenters {
			if other, twice := stageOf[name]; twice {
				return fmt.Errorf("stages[%d] %q: datacenter %q is in stage %q already", i, stage.Name, name, other)
			}
			stageOf[name] = stage.Name
		}
	}
	return s.validateRest()
}

func (s Stage) validate(last bool, gates []Gate) error {
	switch {
	case s.Remainder && !last:
		return fmt.Errorf("remainder: only the last stage can take the remainder")
	case s.Remainder == (len(s.Datacenters) > 0):
		return fmt.Errorf("datacenters: %d names and remainder %t, not one of both", len(s.Datacenters), s.Remainder)
	case slices.Contains(s.Datacenters, ""):
		return fmt.Errorf("datacenters: a name is empty")
	case len(s.Steps) < 1 || len(s.Steps) > MaxSteps:
		return fmt.Errorf("steps: %d steps, not 1 to %d", len(s.Steps), MaxSteps)
	}
	before := 0
	for i, step := range s.Steps {
		if step.Traffic <= before || step.Traffic > whole {
			return fmt.Errorf("steps[%d].traffic: %d basis points, not more than %d and at most %d", i, step.Traffic, before, whole)
		}
		before = step.Traffic
		if step.Soak < 0 {
			return fmt.Errorf("steps[%d].soak: %s is negative", i, step.Soak)
		}
		for _, name := range step.Gates {
			if !slices.ContainsFunc(gates, func(g Gate) bool { return g.Name == name }) {
				return fmt.Errorf("steps[%d].gates: there is no gate %q", i, name)
			}
		}
	}
	if before != whole {
		return fmt.Errorf("steps: the last one has %d basis points, not %d", before, whole)
	}
	return nil
}

func (s Spec) validateRest() error {
	for i, g := range s.Gates {
		if g.FailureThreshold < 1 || g.Interval <= 0 {
			return fmt.Errorf("gates[%d] %q: failureThreshold %d and interval %s, not at least 1 and more than 0", i, g.Name, g.FailureThreshold, g.Interval)
		}
	}
	if q := s.Acknowledgement.Quorum; q < 1 || q > whole {
		return fmt.Errorf("acknowledgement.quorum: %d basis points, not 1 to %d", q, whole)
	}
	if m := s.Limits.MaxTraffic; m < 0 || m > whole {
		return fmt.Errorf("limits.maxTraffic: %d basis points, not 0 to %d", m, whole)
	}
	if d := s.Retirement.Soak; d < 0 {
		return fmt.Errorf("retirement.soak: %s is negative", d)
	}
	if d := s.Acknowledgement.Deadline; d < 0 {
		return fmt.Errorf("acknowledgement.deadline: %s is negative", d)
	}
	if s.Interval <= 0 {
		return fmt.Errorf("interval: %s is not more than 0", s.Interval)
	}
	return s.Rollback.validate()
}

func (r Rollback) validate() error {
	for i, ceiling := range r.Steps {
		if ceiling < 0 || ceiling > whole || i > 0 && ceiling >= r.Steps[i-1] {
			return fmt.Errorf("rollback.steps[%d]: %d basis points, not falling within 0 to %d", i, ceiling, whole)
		}
	}
	if n := len(r.Steps); n > 0 && (r.Steps[n-1] != 0 || r.Interval <= 0) {
		return fmt.Errorf("rollback: the last of the steps is %d basis points and interval %s, not 0 and more than 0", r.Steps[n-1], r.Interval)
	}
	return nil
}
