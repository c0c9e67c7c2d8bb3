// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/ringwright/ringwright/internal/balance"
)

// Scenario is what is simulated. Every field is a value, so that a scenario is changed by setting some.
type Scenario struct {
	Name, Description string
	// Config is the controller's.
	Config balance.Config
	// Endpoints is how many servers there are, Speeds their speeds in turn.
	Endpoints int
	Speeds    []float64
	// Load is the utilisation with perfect weights, Requests how many a second there are for each server.
	Load, Requests float64
	// Variation is the coefficient of variation of the work of a request.
	Variation float64
	// RandomPicks makes clients draw servers, as grpc-go does; others go round in proportion to the weights, as Envoy does.
	RandomPicks bool
	// Duration is how long it is simulated.
	Duration time.Duration
	// ReportInterval is how often a server reports, ReportDelay how long a report takes, Loss which part of them is lost.
	ReportInterval, ReportDelay time.Duration
	Loss                        float64
	// Neighbours is the part of the servers that share their processors at a time with others, who take about an eighth of them.
	// NeighbourTime is how long those stay on average; 0 is for ever.
	Neighbours    float64
	NeighbourTime time.Duration
	// Percent is the part of the traffic that the controller's weights split, in percent; equal weights split the rest.
	Percent float64
	// Equal says that the controller's weights are not used at all, as a comparison.
	Equal bool
	// Ignoring is the part of the clients that pick with equal weights whatever they are told.
	Ignoring float64
	// Ring says that keys choose servers, on a hash ring of these weights.
	Ring bool
	// Events happen at their time.
	Events []Event

	// blind keeps from the controller which weights caused a report, for tests of what that is good for.
	blind bool
	// ideal publishes the weights with which all servers would be equally busy.
	ideal bool
}

// Kind is what an Event does.
type Kind string

// The kinds of events.
const (
	// Freeze makes servers send their last report again and again.
	Freeze Kind = "Freeze"
	// Mute makes servers report no more.
	Mute Kind = "Mute"
	// StallIO leaves servers a tenth of their throughput, with the processor idle: requests wait for a disk.
	StallIO Kind = "StallIO"
	// BlackHole makes servers fail every request at once.
	BlackHole Kind = "BlackHole"
	// Restart restarts the controller with the weights that it stored.
	Restart Kind = "Restart"
	// RestartEmpty restarts it without.
	RestartEmpty Kind = "RestartEmpty"
	// Replace replaces servers by new ones, which are slow at first.
	Replace Kind = "Replace"
	// LieZero makes servers report no load, LieHuge and LieNaN figures that cannot be, LieLow a tenth of the mean whatever happens.
	LieZero Kind = "LieZero"
	LieHuge Kind = "LieHuge"
	LieNaN  Kind = "LieNaN"
	LieLow  Kind = "LieLow"
)

// Event is something that happens.
type Event struct {
	At   time.Duration
	Kind Kind
	// Part is the part of the servers that it happens to; it happens to one at least.
	Part float64
}

// Limits of a Scenario.
const (
	MinEndpoints   = 2
	MaxEndpoints   = 5_000
	MinDuration    = time.Minute
	MaxDuration    = 24 * time.Hour
	MaxReportDelay = 10 * time.Minute
	MaxLoss        = 0.99
)

// Validate returns an error that names the first field with a value outside its limits.
func (s Scenario) Validate() error {
	switch {
	case s.Endpoints < MinEndpoints || s.Endpoints > MaxEndpoints:
		return fmt.Errorf("endpoints is %d, it must be from %d to %d", s.Endpoints, MinEndpoints, MaxEndpoints)
	case s.Duration < MinDuration || s.Duration > MaxDuration:
		return fmt.Errorf("duration is %v, it must be from %v to %v", s.Duration, MinDuration, MaxDuration)
	case s.ReportDelay < 0 || s.ReportDelay > MaxReportDelay:
		return fmt.Errorf("report delay is %v, it must be from 0s to %v", s.ReportDelay, MaxReportDelay)
	case !(s.Loss >= 0 && s.Loss <= MaxLoss):
		return fmt.Errorf("loss is %v, it must be from 0 to %v", s.Loss, MaxLoss)
	}
	if steps := float64(s.Endpoints) * s.Duration.Seconds(); steps > maxSteps {
		return fmt.Errorf("endpoints is %d and duration is %v: together they must be at most %.0f server-seconds", s.Endpoints, s.Duration, float64(maxSteps))
	}
	return s.Config.Validate()
}

// maxSteps bounds the time of a simulation to about ten seconds and its memory to some 100 MB.
const maxSteps = 50_000_000

// staleAfter returns the age of a report from which it is not used, which its delay does not count for.
func (s Scenario) staleAfter() time.Duration {
	return min(max(s.Config.StaleAfter, balance.StaleAfter(s.ReportInterval))+s.ReportDelay, balance.MaxStaleAfter)
}
