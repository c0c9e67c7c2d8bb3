// SPDX-License-Identifier: Apache-2.0

package migration

import "time"

// Event is what a call finds to do. A call finds one.
type Event string

// The events, in the order in which they are looked for.
const (
	EventDeleted Event = "Deleted"
	// EventRollback is any cause to go back but a deletion.
	EventRollback Event = "Rollback"
	// EventFrozen is a deletion that leaves the split as it is.
	EventFrozen Event = "Frozen"
	// EventLowered means that a share is above what limits, the plan or the steps of a rollback allow.
	EventLowered Event = "Lowered"
	EventRetried Event = "Retried"
	// EventHeld means that something holds.
	EventHeld Event = "Held"
	// EventRaised means that a share is below what the step asks for, after limits went up or a datacenter came back.
	EventRaised Event = "Raised"
	// EventRetires means that all is done that has to be before the old ring goes.
	EventRetires Event = "Retires"
	// EventDone means that the place has nothing more to wait for.
	EventDone Event = "Done"
	// EventNothing is that of all others.
	EventNothing Event = "Nothing"
)

// events are all of them, in order: deletion, rollback, limits downwards, then validity and other holds, then the step. A
// deletion that freezes comes after rollback, which nothing may stop.
var events = []Event{
	EventDeleted, EventRollback, EventFrozen, EventLowered, EventRetried, EventHeld, EventRaised, EventRetires, EventDone, EventNothing,
}

var places = []Place{
	Pending, Queued, Preparing, Dispatching, Converging, Soaking, AwaitingApproval, Complete, Retiring, Succeeded, RollingBack, RolledBack,
}

// row is what an event does at a place. With pass it does not count there and the next event is looked for; otherwise the
// migration goes to a place, which can be the one where it is.
type row struct {
	pass bool
	to   Place
	do   func(s *State, o Observation, now time.Time)
}

var pass = row{pass: true}

func to(p Place) row { return row{to: p} }

func doing(do func(s *State, o Observation, now time.Time), p Place) row { return row{to: p, do: do} }

// table has a row for every place and event.
var table = map[Place]map[Event]row{
	Pending: {
		EventDeleted: doing(goBack, RollingBack), EventRollback: doing(goBack, RollingBack), EventFrozen: to(Pending),
		EventLowered: pass, EventRetried: pass, EventHeld: to(Pending), EventRaised: pass, EventRetires: pass,
		EventDone: doing(queue, Queued), EventNothing: to(Pending),
	},
	Queued: {
		EventDeleted: doing(goBack, RollingBack), EventRollback: doing(goBack, RollingBack), EventFrozen: to(Queued),
		EventLowered: pass, EventRetried: pass, EventHeld: to(Queued), EventRaised: pass, EventRetires: pass,
		EventDone: doing(prepare, Preparing), EventNothing: to(Queued),
	},
	Preparing: {
		EventDeleted: doing(goBack, RollingBack), EventRollback: doing(goBack, RollingBack), EventFrozen: to(Preparing),
		EventLowered: pass, EventRetried: pass, EventHeld: to(Preparing), EventRaised: pass, EventRetires: pass,
		EventDone: doing(enter, Dispatching), EventNothing: to(Preparing),
	},
	Dispatching:      stepRows(Dispatching, to(Converging), pass),
	Converging:       stepRows(Converging, doing(settle, Soaking), pass),
	Soaking:          stepRows(Soaking, to(AwaitingApproval), pass),
	AwaitingApproval: stepRows(AwaitingApproval, to(Complete), pass),
	Complete:         stepRows(Complete, doing(next, Dispatching), doing(retire, Retiring)),
	Retiring: { // The point of no return is behind it.
		EventDeleted: pass, EventRollback: pass, EventFrozen: pass, EventLowered: pass, EventRetried: pass, EventHeld: pass,
		EventRaised: pass, EventRetires: pass, EventDone: to(Succeeded), EventNothing: to(Retiring),
	},
	Succeeded: {
		EventDeleted: to(Succeeded), EventRollback: pass, EventFrozen: to(Succeeded), EventLowered: pass, EventRetried: pass,
		EventHeld: pass, EventRaised: pass, EventRetires: pass, EventDone: pass, EventNothing: to(Succeeded),
	},
	RollingBack: {
		EventDeleted: pass, EventRollback: pass, EventFrozen: pass, EventLowered: doing(lower, RollingBack), EventRetried: pass,
		EventHeld: pass, EventRaised: pass, EventRetires: pass, EventDone: doing(latch, RolledBack), EventNothing: to(RollingBack),
	},
	RolledBack: {
		EventDeleted: to(RolledBack), EventRollback: pass, EventFrozen: to(RolledBack), EventLowered: pass,
		EventRetried: doing(retry, Pending), EventHeld: pass, EventRaised: pass, EventRetires: pass, EventDone: pass,
		EventNothing: to(RolledBack),
	},
}

// stepRows are the rows of a place within a step; they differ in what follows.
func stepRows(p Place, done, retires row) map[Event]row {
	return map[Event]row{
		EventDeleted: doing(goBack, RollingBack), EventRollback: doing(goBack, RollingBack), EventFrozen: to(p),
		EventLowered: doing(lower, Dispatching), EventRetried: pass, EventHeld: to(p), EventRaised: doing(raise, Dispatching),
		EventRetires: retires, EventDone: done, EventNothing: to(p),
	}
}
