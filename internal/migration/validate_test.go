// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"slices"
	"strings"
	"testing"
)

// TestValidate: what is wrong is named with field, value and limit.
func TestValidate(t *testing.T) {
	for name, row := range map[string]struct {
		edit func(s *Spec)
		want string
	}{
		"as it is":          {func(*Spec) {}, ""},
		"a problem":         {func(s *Spec) { s.Problem = "gates[0]: no such function" }, "no such function"},
		"no stages":         {func(s *Spec) { s.Stages = nil }, "stages: 0 stages, not 1 to 32"},
		"33 stages":         {func(s *Spec) { s.Stages = make([]Stage, 33) }, "33 stages"},
		"remainder first":   {func(s *Spec) { slices.Reverse(s.Stages) }, "only the last stage"},
		"both":              {func(s *Spec) { s.Stages[1].Datacenters = []string{"x"} }, "1 names and remainder true"},
		"neither":           {func(s *Spec) { s.Stages[0].Datacenters = nil }, "0 names and remainder false"},
		"no name":           {func(s *Spec) { s.Stages[0].Datacenters = []string{""} }, "a name is empty"},
		"twice":             {func(s *Spec) { s.Stages[0].Datacenters = []string{"a", "a"} }, `"a" is in stage "first" already`},
		"no steps":          {func(s *Spec) { s.Stages[0].Steps = nil }, "0 steps, not 1 to 16"},
		"17 steps":          {func(s *Spec) { s.Stages[0].Steps = make([]PlannedStep, 17) }, "17 steps"},
		"falling":           {func(s *Spec) { s.Stages[0].Steps[1].Traffic = 5000 }, "5000 basis points, not more than 5000"},
		"too much":          {func(s *Spec) { s.Stages[0].Steps[1].Traffic = whole + 1 }, "at most 10000"},
		"not the whole":     {func(s *Spec) { s.Stages[1].Steps[0].Traffic = 9999 }, "9999 basis points, not 10000"},
		"soak":              {func(s *Spec) { s.Stages[1].Steps[0].Soak = -tick }, "-1m0s is negative"},
		"gate":              {func(s *Spec) { s.Stages[1].Steps[0].Gates = []string{"x"} }, `no gate "x"`},
		"threshold":         {func(s *Spec) { s.Gates[0].FailureThreshold = 0 }, "failureThreshold 0"},
		"quorum":            {func(s *Spec) { s.Acknowledgement.Quorum = 0 }, "0 basis points, not 1 to 10000"},
		"limit":             {func(s *Spec) { s.Limits.MaxTraffic = -1 }, "limits.maxTraffic: -1"},
		"retirement":        {func(s *Spec) { s.Retirement.Soak = -1 }, "retirement.soak"},
		"deadline":          {func(s *Spec) { s.Acknowledgement.Deadline = -1 }, "acknowledgement.deadline"},
		"interval":          {func(s *Spec) { s.Interval = 0 }, "interval: 0s"},
		"rollback rises":    {func(s *Spec) { s.Rollback = Rollback{Steps: []int{10, 20, 0}, Interval: tick} }, "rollback.steps[1]: 20"},
		"rollback stays":    {func(s *Spec) { s.Rollback = Rollback{Steps: []int{10}, Interval: tick} }, "the last of the steps is 10"},
		"rollback interval": {func(s *Spec) { s.Rollback = Rollback{Steps: []int{10, 0}} }, "interval 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testSpec()
			row.edit(&s)
			err := s.Validate()
			if row.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// TestEdits: what has begun may become more cautious; what has not may become anything.
func TestEdits(t *testing.T) {
	gate := func(name string) Gate { g := testSpec().Gates[0]; g.Name = name; return g }
	base := func() Spec {
		s := testSpec()
		s.Gates = append(s.Gates, gate("latency"))
		s.Stages = slices.Insert(s.Stages, 1, Stage{Name: "second", Datacenters: []string{"b", "c"}, Steps: []PlannedStep{
			{Traffic: 2000, Soak: tick, Gates: []string{"errors"}, Approval: true}, {Traffic: whole, Soak: tick}}})
		return s
	}
	for name, row := range map[string]struct {
		edit func(s *Spec)
		want string
	}{
		"lower":             {func(s *Spec) { s.Stages[1].Steps[0].Traffic = 1000 }, ""},
		"longer":            {func(s *Spec) { s.Stages[1].Steps[0].Soak = 9 * tick }, ""},
		"all gates":         {func(s *Spec) { s.Stages[1].Steps[0].Gates = nil }, ""},
		"one gate more":     {func(s *Spec) { s.Stages[1].Steps[0].Gates = []string{"latency", "errors"} }, ""},
		"a later step":      {func(s *Spec) { s.Stages[1].Steps[1].Soak = 0 }, ""},
		"one step more":     {func(s *Spec) { s.Stages[1].Steps = slices.Insert(s.Stages[1].Steps, 1, PlannedStep{Traffic: 7000}) }, ""},
		"a later stage":     {func(s *Spec) { s.Stages[2].Name = "other" }, ""},
		"no later stage":    {func(s *Spec) { s.Stages = s.Stages[:2] }, ""},
		"raised":            {func(s *Spec) { s.Stages[1].Steps[0].Traffic = 3000 }, "traffic of step 1 is raised"},
		"shorter":           {func(s *Spec) { s.Stages[1].Steps[0].Soak = 0 }, "soak of step 1 is shorter"},
		"no approval":       {func(s *Spec) { s.Stages[1].Steps[0].Approval = false }, "no approval"},
		"another gate":      {func(s *Spec) { s.Stages[1].Steps[0].Gates = []string{"latency"} }, "fewer gates"},
		"gates of all":      {func(s *Spec) { s.Stages[0].Steps[0].Gates = []string{"latency"} }, "fewer gates"},
		"another name":      {func(s *Spec) { s.Stages[1].Name = "x" }, "its name or datacenters differ"},
		"one more":          {func(s *Spec) { s.Stages[1].Datacenters = append(s.Stages[1].Datacenters, "d") }, "its name or datacenters differ"},
		"a stage less":      {func(s *Spec) { s.Stages = s.Stages[:1] }, `"second" has begun and is gone`},
		"a finished step":   {func(s *Spec) { s.Stages[0].Steps = s.Stages[0].Steps[1:] }, `"first" has begun`},
		"the first skipped": {func(s *Spec) { s.Stages = s.Stages[1:] }, `"first" has begun`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun("edge")
			r.spec = base()
			r.fleet["c"], r.gates["latency"] = here, Pass
			r.until(t, Soaking, 1)
			r.spec = base()
			row.edit(&r.spec)
			if err := r.spec.Validate(); err != nil {
				t.Fatal(err)
			}
			if row.want != "" {
				if got := r.wantHold(t, HoldPlanDrift); !strings.Contains(got, row.want) {
					t.Errorf("it says %q, want %q", got, row.want)
				}
				if r.s.Split["b"] != 2000 || len(r.s.Plan) != 3 {
					t.Errorf("the plan before is not followed: %v", r.s.Split)
				}
				return
			}
			r.wantNoHold(t)
			if name == "lower" && (r.s.Split["b"] != 1000 || r.s.At != Dispatching || r.s.Split["a"] != whole) {
				t.Errorf("it is %s with %v", r.s.At, r.s.Split)
			}
			r.until(t, Succeeded, len(r.spec.Stages))
		})
	}
}

// TestEditBeforeTheFirstStep: nothing has begun, so all of the plan can be another one.
func TestEditBeforeTheFirstStep(t *testing.T) {
	r := newRun("edge")
	r.until(t, Preparing, 0)
	r.spec.Stages = []Stage{{Name: "all", Remainder: true, Steps: []PlannedStep{{Traffic: whole}}}}
	r.until(t, Soaking, 0)
	if !r.s.Split.Equal(Split{"a": whole, "b": whole}) {
		t.Errorf("the split is %v", r.s.Split)
	}
}
