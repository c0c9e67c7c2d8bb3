// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/ringwright/ringwright/internal/balance"
)

// base is what scenarios change: 60 servers of three speeds, of which the slowest are 40 % busier than the average when all have
// the same weight.
func base(name, description string, change func(*Scenario)) Scenario {
	config, _ := balance.Profile(balance.ProfileBalanced)
	s := Scenario{
		Name: name, Description: description, Config: config,
		Endpoints: 60, Speeds: []float64{0.66, 1, 1.35},
		Load: 0.5, Requests: 600, Variation: 0.5,
		Duration: 10 * time.Minute, ReportInterval: 5 * time.Second,
		Percent: 100,
	}
	if change != nil {
		change(&s)
	}
	return s
}

// at returns events of one.
func at(when time.Duration, kind Kind, part float64) []Event {
	return []Event{{when, kind, part}}
}

// settled is when the scenarios in which something happens have converged.
const settled = 4 * time.Minute

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	list := []Scenario{
		base("three-speeds", "servers of three speeds, from equal weights on", nil),
		base("equal", "the same with equal weights, as a comparison", func(s *Scenario) { s.Equal = true }),
		base("noisy-neighbours", "a sixth of the servers share their processors with others", func(s *Scenario) { s.Neighbours = 1.0 / 6 }),
		base("moving-neighbours", "the same, with others who come and stay for five minutes", func(s *Scenario) {
			s.Neighbours, s.NeighbourTime, s.Duration = 1.0/6, 5*time.Minute, 20*time.Minute
		}),
		base("random-picks", "clients that draw servers, as grpc-go does with localities, instead of going round", func(s *Scenario) { s.RandomPicks = true }),
		base("late-reports", "reports that are 30 seconds old", func(s *Scenario) { s.ReportDelay, s.Duration = 30*time.Second, 15*time.Minute }),
		base("very-late-reports", "reports of 60 seconds that are 60 seconds old, as of metrics.k8s.io", func(s *Scenario) {
			s.ReportInterval, s.ReportDelay, s.Duration = 60*time.Second, 60*time.Second, 30*time.Minute
		}),
		base("lost-reports", "40% of the reports are lost", func(s *Scenario) { s.Loss = 0.4 }),
		base("mute-minority", "40% of the servers stop reporting", func(s *Scenario) { s.Events = at(settled, Mute, 0.4) }),
		base("mute-majority", "60% of the servers stop reporting: the weights stay as they are", func(s *Scenario) { s.Events = at(settled, Mute, 0.6) }),
		base("frozen-reports", "ten servers send the same report again and again", func(s *Scenario) { s.Events = at(settled, Freeze, 1.0/6) }),
		base("restart", "the controller restarts with the weights that it stored", func(s *Scenario) { s.Events = at(settled, Restart, 0) }),
		base("restart-empty", "the controller restarts without", func(s *Scenario) { s.Events = at(settled, RestartEmpty, 0) }),
		base("stalled-disk", "a server whose requests wait for its disk, with an idle processor", func(s *Scenario) { s.Events = at(settled, StallIO, 0) }),
		base("black-hole", "a server that fails every request at once", func(s *Scenario) { s.Events = at(settled, BlackHole, 0) }),
		base("rolling-update", "five servers at a time are replaced by new ones, which are slow at first", func(s *Scenario) {
			s.Load = 0.6
			for i := range 12 {
				s.Events = append(s.Events, Event{settled + time.Duration(i)*20*time.Second, Replace, 1.0 / 12})
			}
			s.Duration = 14 * time.Minute
		}),
		base("shadow", "weights are computed, and clients keep equal ones", func(s *Scenario) { s.Percent = 0 }),
		base("half", "half of the traffic is split by the weights", func(s *Scenario) { s.Percent = 50 }),
		base("ignoring-clients", "all clients ignore the weights", func(s *Scenario) { s.Ignoring = 1 }),
		base("liar", "a server that always claims a tenth of the usual load", func(s *Scenario) { s.Events = at(settled, LieLow, 0) }),
		base("low-load", "servers of three speeds that are 5% busy", func(s *Scenario) { s.Load = 0.05 }),
		base("ring", "a hash ring of servers of three speeds, whose weights are factors of the points", ringScenario),
	}
	return list
}

func ringScenario(s *Scenario) {
	config, _ := balance.Profile(balance.ProfileRing)
	s.Config, s.Ring, s.Load = config, true, 0.4
	s.ReportInterval, s.Duration = 10*time.Second, 2*time.Hour
}

// Find returns the scenario with a name.
func Find(name string) (Scenario, bool) {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
