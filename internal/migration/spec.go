// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"time"

	"github.com/ringwright/ringwright/pkg/routing"
)

// whole is all of the keys, in basis points.
const whole = routing.MaxBasisPoints

// Spec is what somebody asks for. It can be edited at any time. Shares are in basis points, 0 to 10,000.
type Spec struct {
	// Stages are done one after the other.
	Stages []Stage
	Gates  []Gate
	Limits Limits
	// Suspended stops advancing. Rollback by gates stays on.
	Suspended bool
	// Backward asks for a rollback.
	Backward bool
	// Attempt goes forward again after a rollback when it grows.
	Attempt         int64
	Acknowledgement Acknowledgement
	Rollback        Rollback
	Retirement      Retirement
	// OnDelete is what a deletion before Retiring does.
	OnDelete DeletePolicy
	// Interval is how often the caller observes. A soak is credited with at most twice of it at once.
	Interval time.Duration
	// Problem is what is wrong with it that cannot be seen here, such as an expression of a gate; "" where nothing is.
	Problem string
}

// Stage is a group of datacenters whose share grows together.
type Stage struct {
	Name string
	// Datacenters are named, and those of no other stage.
	Datacenters []string
	// Remainder takes, instead, those that no stage names and that are there when the stage begins. Only the last stage can.
	Remainder bool
	// Steps have growing traffic, the last one the whole.
	Steps []PlannedStep
}

// PlannedStep is one share of a stage.
type PlannedStep struct {
	// Traffic is the share of the keys that goes to the candidate.
	Traffic int
	// Soak is how much clean time has to be credited.
	Soak time.Duration
	// Gates are the names of those that judge it; all where it names none.
	Gates []string
	// Approval asks for a person after the soak.
	Approval bool
}

// Gate is a measurement that judges the candidate.
type Gate struct {
	Name string
	// Enforced is false for one that is only shown.
	Enforced bool
	// Interval is how often it is measured. A result is worth nothing once it is older than twice that.
	Interval time.Duration
	// FailureThreshold is how many Fails within FailureWindow roll back.
	FailureThreshold int
	FailureWindow    time.Duration
}

// Limits lie on top of the plan and do not lose its position.
type Limits struct {
	MaxTraffic int
	// Excluded datacenters stay on the stable ring.
	Excluded []string
}

// Acknowledgement is which part of a datacenter's consumers, in basis points, has to have a split, and how long that may take
// before it is a hold.
type Acknowledgement struct {
	Quorum   int
	Deadline time.Duration
}

// Rollback is how to go back.
type Rollback struct {
	// Automatic lets gates roll back. Without it their failure is a hold.
	Automatic bool
	// Steps are the ceilings of the share, falling, the last one 0, Interval apart. Without steps it is 0 at once.
	Steps    []int
	Interval time.Duration
}

// Retirement is what has to come before the old ring goes.
type Retirement struct {
	Soak     time.Duration
	Approval bool
}

// DeletePolicy is what a deletion before Retiring does.
type DeletePolicy string

const (
	// DeleteRollsBack rolls back first.
	DeleteRollsBack DeletePolicy = "Rollback"
	// DeleteFreezes leaves the published split as it is.
	DeleteFreezes DeletePolicy = "Freeze"
)
