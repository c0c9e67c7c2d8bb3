// SPDX-License-Identifier: Apache-2.0

package migrationapi_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 123456000, time.UTC)

// chooser makes states at random.
type chooser struct{ *rand.Rand }

func (c chooser) time() time.Time { return epoch.Add(time.Duration(c.IntN(1e9)) * time.Microsecond) }

func (c chooser) maybe() bool { return c.IntN(2) == 0 }

func (c chooser) maybeTime() time.Time {
	if c.maybe() {
		return time.Time{}
	}
	return c.time()
}

func pick[T any](c chooser, list ...T) T { return list[c.IntN(len(list))] }

// state returns a state as far as there is anything in it that a status keeps.
func (c chooser) state() migration.State {
	s := migration.State{
		At: pick(c, migration.Pending, migration.Queued, migration.Preparing, migration.Dispatching, migration.Soaking, migration.AwaitingApproval,
			migration.Complete, migration.Retiring, migration.Succeeded, migration.RollingBack, migration.RolledBack),
		Attempt: 1 + c.Int64N(9), SpecAttempt: 1 + c.Int64N(9), Seed: c.Uint32(), Announced: c.maybeTime(),
	}
	if s.InStep() || c.maybe() {
		s.Plan = c.plan()
		s.Stage, s.Step = c.IntN(len(s.Plan)+1), 0
		if s.Stage < len(s.Plan) {
			s.Step = c.IntN(len(s.Plan[s.Stage].Steps))
		}
	}
	if c.maybe() {
		s.Remainder = []string{"ams01", "fra02"}
	}
	c.dispatch(&s)
	c.gates(&s)
	c.people(&s)
	for _, t := range []migration.HoldType{migration.HoldPaused, migration.HoldGateUnknown, migration.HoldNotConverged} {
		if c.maybe() {
			s.Holds = append(s.Holds, migration.Hold{Type: t, Since: c.time(), Detail: fmt.Sprint("detail ", c.IntN(9))})
		}
	}
	if c.maybe() {
		s.Last = migration.Transition{From: migration.Soaking, To: s.At, Event: migration.EventDone, At: c.time()}
	}
	return s
}

func (c chooser) plan() []migration.Stage {
	step := func(traffic int) migration.PlannedStep {
		p := migration.PlannedStep{Traffic: traffic, Soak: time.Duration(c.IntN(1e6)) * time.Millisecond, Approval: c.maybe()}
		if c.maybe() {
			p.Gates = []string{"errors"}
		}
		return p
	}
	return []migration.Stage{
		{Name: "lab", Datacenters: []string{"lab01", "lab02"}, Steps: []migration.PlannedStep{step(1 + c.IntN(99)), step(100 + c.IntN(9000)), step(10000)}},
		{Name: "world", Remainder: true, Steps: []migration.PlannedStep{step(10000)}},
	}
}

func (c chooser) dispatch(s *migration.State) {
	if c.maybe() {
		return
	}
	s.Dispatches, s.Dispatched, s.Unconverged, s.Effective = 1+c.Int64N(99), c.maybeTime(), c.maybeTime(), c.maybeTime()
	s.Approved, s.Skipped = c.maybe(), c.maybe()
	s.Candidates = map[string]string{"edge": "sha256:" + strings.Repeat("a", 64), "side": "sha256:" + strings.Repeat("b", 64)}
	s.Split = migration.Split{"lab01": c.IntN(10001), "lab02": 0}
	if c.maybe() {
		s.Versions = map[string]migration.Version{"edge": {Epoch: c.Int64N(3), Generation: 1 + c.Int64N(99)}, "side": {Generation: 1 + c.Int64N(99)}}
	}
	if s.InStep() {
		s.Soak = migration.Soak{Credited: time.Duration(c.IntN(1e6)) * time.Microsecond, Clean: c.maybeTime()}
	}
}

func (c chooser) gates(s *migration.State) {
	s.Gates = map[string]migration.GateRecord{}
	for _, name := range []string{"agents", "errors"} {
		record := migration.GateRecord{Answered: c.maybe()}
		if c.maybe() {
			record.Measurement = migration.Measurement{
				Gate: name, At: c.time(), Result: pick(c, migration.Pass, migration.Fail, migration.NoData), Detail: "0.1 % of 1000",
			}
		}
		for range c.IntN(3) {
			record.Failures = append(record.Failures, c.time())
		}
		s.Gates[name] = record
	}
}

func (c chooser) people(s *migration.State) {
	if c.maybe() {
		s.Paused = &migration.Pause{Actor: "ann", At: c.time()}
	}
	if c.maybe() {
		s.Back = &migration.Return{Cause: migration.CauseGate, Detail: "errors failed 3 times", Since: c.time()}
		s.Unreached = pick(c, nil, []string{"ams01"})
	}
	for i := range c.IntN(3) {
		s.History = append(s.History, migration.Answered{
			Action: migration.Action{ID: fmt.Sprint("uid-", i), Name: "a", Type: migration.Approve, Token: "1.1.1-1", Actor: "bob", Reason: "looks good"},
			At:     c.time(), Refusal: pick(c, "", migration.StaleStep),
		})
	}
}

// spec is one with the gates of the states.
func spec() migration.Spec {
	return migration.Spec{
		Gates:    []migration.Gate{{Name: "agents", Enforced: true, Interval: time.Minute}, {Name: "errors", Enforced: true, Interval: time.Minute}},
		Interval: migrationapi.DefaultInterval,
	}
}
