// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// soaking drives a migration of one ring and datacenter with the results of a runner, as the controller does.
type soaking struct {
	t      *testing.T
	runner *Runner
	state  migration.State
	ring   migration.Ring
	gate   v1alpha1.MigrationGate
}

// look observes, decides and carries out once.
func (s *soaking) look() {
	now := time.Now()
	o := migration.Observation{
		Self: "uid",
		Spec: migration.Spec{
			Stages:   []migration.Stage{{Name: "all", Datacenters: []string{"lab01"}, Steps: []migration.PlannedStep{{Traffic: 5000, Soak: time.Hour}, {Traffic: 10_000}}}},
			Gates:    []migration.Gate{{Name: s.gate.Name, Enforced: true, Interval: time.Minute, FailureThreshold: 3, FailureWindow: 10 * time.Minute}},
			Limits:   migration.Limits{MaxTraffic: 10_000},
			Attempt:  1,
			Rollback: migration.Rollback{Automatic: true}, OnDelete: migration.DeleteRollsBack, Interval: 15 * time.Second,
			Acknowledgement: migration.Acknowledgement{Quorum: 10_000, Deadline: 10 * time.Minute},
		},
		Rings:  []migration.Ring{s.ring},
		Fleets: []migration.Fleet{{Ring: "edge", Datacenter: "lab01", Version: s.ring.Published.Version, Total: 5, Reachable: 5, Current: 5}},
	}
	o.Measurements = s.runner.Follow(Subject{
		UID: "uid", Namespace: "cdn", Name: "v1-to-v2", Token: s.state.Token(), Rings: []string{"edge"}, Datacenters: []string{"lab01"},
		Effective: s.state.Effective, SelfTest: s.state.At == migration.Preparing,
	}, []v1alpha1.MigrationGate{s.gate})
	next, effects := migration.Step(s.state, o, now)
	s.state = next
	for _, e := range effects {
		switch p := &s.ring.Published; e.Kind {
		case migration.Lock:
			s.ring.Holder = "uid"
		case migration.Publish:
			p.Candidate, p.Seed, p.Split = e.Candidate, e.Seed, e.Split
			p.Version.Generation++
		case migration.Withdraw:
			p.Candidate, p.Seed, p.Split = "", 0, nil
			p.Version.Generation++
		case migration.Unlock:
			s.ring.Holder = ""
		default:
			s.t.Fatalf("%+v", e)
		}
	}
}

// watch looks for some time.
func (s *soaking) watch(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		s.look()
		<-time.After(15 * time.Second)
	}
}

func (s *soaking) held() migration.HoldType {
	if len(s.state.Holds) == 0 {
		return ""
	}
	return s.state.Holds[0].Type
}

// TestOutageOfASoak has no Prometheus for half an hour: nothing moves, nothing is credited, and it resumes.
func TestOutageOfASoak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{value: ""}
		r, _ := started(t, server, Options{})
		s := &soaking{t: t, runner: r, gate: asked("http://prometheus", "q"), ring: migration.Ring{
			Name: "edge", Candidate: "new", Emptied: true, Published: migration.Published{Version: migration.Version{Epoch: 1, Generation: 1}, Stable: "old"},
		}}
		s.watch(10 * time.Minute)
		if s.state.At != migration.Preparing || s.held() != migration.HoldGateUnknown {
			t.Fatalf("without a self-test it is %s, held by %v", s.state.At, s.state.Holds)
		}
		server.set("0.01")
		s.watch(30 * time.Minute)
		before := s.state.Soak.Credited
		if s.state.At != migration.Soaking || s.held() != "" || before < 20*time.Minute || before > 28*time.Minute {
			t.Fatalf("%s, %s credited, held by %v", s.state.At, before, s.state.Holds)
		}
		server.set("")
		s.watch(5 * time.Minute)
		stopped, split := s.state.Soak.Credited, s.state.Split
		if stopped-before > 3*time.Minute || s.held() != migration.HoldGateUnknown {
			t.Errorf("%s are credited without a result, held by %v", stopped-before, s.state.Holds)
		}
		s.watch(25 * time.Minute)
		if s.state.At != migration.Soaking || s.state.Soak.Credited != stopped || !s.state.Split.Equal(split) {
			t.Errorf("%s, %s more credited, %v", s.state.At, s.state.Soak.Credited-stopped, s.state.Split)
		}
		server.set("0.01")
		s.watch(4 * time.Minute)
		if s.held() != "" || s.state.Soak.Credited-stopped < 2*time.Minute {
			t.Errorf("it has not resumed: %s credited, held by %v", s.state.Soak.Credited-stopped, s.state.Holds)
		}
		server.set("0.5")
		s.watch(5 * time.Minute)
		if s.state.At != migration.RollingBack && s.state.At != migration.RolledBack {
			t.Errorf("harm leaves it %s, held by %v", s.state.At, s.state.Holds)
		}
	})
}
