// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// point is what somebody waits for.
type point struct {
	kind  pointKind
	stage string
	// step counts from 1.
	step  int
	phase v1alpha1.MigrationPhase
}

type pointKind string

const (
	pointSucceeded  pointKind = "succeeded"
	pointRolledBack pointKind = "rolled-back"
	pointStep       pointKind = "step"
	pointPhase      pointKind = "phase"
	pointHeld       pointKind = "held"
)

var migrationPhases = []v1alpha1.MigrationPhase{
	v1alpha1.MigrationPending, v1alpha1.MigrationQueued, v1alpha1.MigrationPreparing, v1alpha1.MigrationShifting, v1alpha1.MigrationSoaking,
	v1alpha1.MigrationRetiring, v1alpha1.MigrationSucceeded, v1alpha1.MigrationRollingBack, v1alpha1.MigrationRolledBack,
}

// parsePoint reads the value of --for.
func parsePoint(text string) (point, error) {
	name, value, assigned := strings.Cut(text, "=")
	switch kind := pointKind(name); {
	case text == "":
		return point{}, errors.New("nothing is given: it must be succeeded, rolled-back, step=STAGE/N, phase=PHASE or held")
	case !assigned && (kind == pointSucceeded || kind == pointRolledBack || kind == pointHeld):
		return point{kind: kind}, nil
	case kind == pointStep:
		stage, number, _ := strings.Cut(value, "/")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || stage == "" {
			return point{}, fmt.Errorf("%q is no step: it must be step=STAGE/N, such as step=europe/2", text)
		}
		return point{kind: kind, stage: stage, step: n}, nil
	case kind == pointPhase:
		for _, phase := range migrationPhases {
			if strings.EqualFold(value, string(phase)) {
				return point{kind: kind, phase: phase}, nil
			}
		}
		return point{}, fmt.Errorf("%q is no phase: it must be one of %s", value, joinStrings(migrationPhases))
	}
	return point{}, fmt.Errorf("%q is not known: it must be succeeded, rolled-back, step=STAGE/N, phase=PHASE or held", text)
}

func joinStrings[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

func (p point) String() string {
	switch p.kind {
	case pointStep:
		return fmt.Sprintf("step=%s/%d", p.stage, p.step)
	case pointPhase:
		return "phase=" + string(p.phase)
	default:
		return string(p.kind)
	}
}

// reached says whether a migration is there. It is an error to wait for a step that the plan does not have.
func (p point) reached(v migrationView) (bool, error) {
	switch p.kind {
	case pointSucceeded:
		return v.phase() == v1alpha1.MigrationSucceeded, nil
	case pointRolledBack:
		return v.phase() == v1alpha1.MigrationRolledBack, nil
	case pointPhase:
		return v.phase() == p.phase, nil
	case pointHeld:
		return len(v.Status.Holds) > 0, nil
	}
	stages := v.stages()
	i := slices.IndexFunc(stages, func(s v1alpha1.MigrationStage) bool { return s.Name == p.stage })
	if i < 0 {
		names := make([]string, len(stages))
		for i, s := range stages {
			names[i] = s.Name
		}
		return false, fmt.Errorf("there is no stage %q: it has %s", p.stage, strings.Join(names, ", "))
	}
	if n := len(stages[i].Steps); p.step > n {
		return false, fmt.Errorf("stage %s has no step %d: it has %s", p.stage, p.step, plural(n, "step", "steps"))
	}
	return !v.goesBack() && v.reached(i, p.step-1) > 0, nil
}
