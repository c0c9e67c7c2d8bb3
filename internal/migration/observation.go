// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"slices"
	"time"
)

// Observation is what was seen. All of it may be late: nothing in it is taken for newer than it says it is.
type Observation struct {
	// Self names the migration for ever; its UID.
	Self string
	Spec Spec
	// Deleted says that it is to go as soon as it lets itself.
	Deleted bool
	// Rings are those that move in step, in the order of their names.
	Rings []Ring
	// Fleets are the consumers, by ring and datacenter; of each pair there is one at most. There are none while Unasked.
	Fleets []Fleet
	// Unasked says that nobody has asked the consumers of some ring yet, so that nothing is known of who is where.
	Unasked bool
	// Measurements are the newest ones of the gates.
	Measurements []Measurement
	// Actions are those that have no answer yet, in the order of their creation.
	Actions []Action
}

// Ring is one of the HashRings.
type Ring struct {
	Name string
	// Holder is who has the lock, "" where nobody has.
	Holder string
	// Candidate is the digest of the ring to go to, "" where there is none.
	Candidate string
	// Published is what the routing file says, and that the snapshots that it names are there.
	Published Published
	// Behind says that it has been told another split than the one that is published, and will publish that.
	Behind bool
	// Emptied says that the slot which the stable ring is not in has no snapshot.
	Emptied bool
	// Drift is the part of the weight, in basis points, that has left both rings since the migration began.
	Drift int
}

// Published is the content of a routing file.
type Published struct {
	Version           Version
	Stable, Candidate string
	Seed              uint32
	Split             Split
}

// Version orders routing files.
type Version struct{ Epoch, Generation int64 }

// Compare compares epochs, and generations of the same epoch.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Epoch, w.Epoch), cmp.Compare(v.Generation, w.Generation))
}

// Fleet is the consumers of a ring in a datacenter; "" is the datacenter of those that have none.
type Fleet struct {
	Ring, Datacenter string
	// Version is that of the routing file against which they were judged.
	Version Version
	// Total are all consumers, Reachable those that answered, Current those of them that have this version and its digests.
	Total, Reachable, Current int
	// Stale names the first of those that are not current.
	Stale []string
}

// Result is what a measurement says.
type Result string

// The results. Only Pass advances and only Fail rolls back: of the other three nothing is known.
const (
	Pass         Result = "Pass"
	Fail         Result = "Fail"
	NoData       Result = "NoData"
	Error        Result = "Error"
	Inconclusive Result = "Inconclusive"
)

// Measurement is what a gate said. At is when it was taken; Detail has value and threshold, for people.
type Measurement struct {
	Gate   string
	At     time.Time
	Result Result
	Detail string
}

// ActionType is what an action asks for.
type ActionType string

// The actions.
const (
	Approve         ActionType = "Approve"
	Reject          ActionType = "Reject"
	PauseAction     ActionType = "Pause"
	ResumeAction    ActionType = "Resume"
	RollbackAction  ActionType = "Rollback"
	RetryAction     ActionType = "Retry"
	SkipAction      ActionType = "Skip"
	maxHistory                 = 50
	maxShownDetails            = 8
)

// Action is a command of a person. Who may give which one is not decided here.
type Action struct {
	// ID names the action for ever; its UID.
	ID    string
	Type  ActionType
	Token string
	Actor string
	// Name and Reason are for people.
	Name, Reason string
}

// ring returns the ring of that name; nil where it was not seen.
func (o Observation) ring(name string) *Ring {
	if i := slices.IndexFunc(o.Rings, func(r Ring) bool { return r.Name == name }); i >= 0 {
		return &o.Rings[i]
	}
	return nil
}

// datacenters returns where there are consumers, sorted.
func (o Observation) datacenters() []string {
	var names []string
	for _, f := range o.Fleets {
		if f.Total > 0 {
			names = append(names, f.Datacenter)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// reachable says whether a datacenter has consumers of which some answer, of each ring that has consumers there.
func (o Observation) reachable(datacenter string) bool {
	found := false
	for _, f := range o.Fleets {
		if f.Datacenter == datacenter && f.Total > 0 {
			if f.Reachable == 0 {
				return false
			}
			found = true
		}
	}
	return found
}
