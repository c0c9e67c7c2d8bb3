// SPDX-License-Identifier: Apache-2.0

// Package agentapi is what an agent tells of itself at /v1/status, as the agent writes it and the operator reads it.
package agentapi

import "time"

// StatusPath is where an agent serves its [Status].
const StatusPath = "/v1/status"

// MaxNotAppliedBytes is how long Status.NotApplied can be.
const MaxNotAppliedBytes = 256

// Status is the body of /v1/status. What belongs to a ring is left out until one is loaded.
type Status struct {
	// Ready says that a ring is loaded.
	Ready bool `json:"ready"`
	// Datacenter is where the agent runs, "" where it was not told.
	Datacenter string `json:"datacenter,omitempty"`
	*Routing
	// Forced is "stable" or "candidate" where somebody told this agent to ignore the split, else "".
	Forced string `json:"forced,omitempty"`
	// StartedAt is when the process began to count: counters of another start are others.
	StartedAt time.Time `json:"startedAt"`
	// Draining says that the agent was asked to stop and still answers.
	Draining bool `json:"draining,omitempty"`
	// NotApplied says why something that the agent keeps up to date, such as NGINX, does not route by what is loaded, in at most
	// MaxNotAppliedBytes; "" where all does.
	NotApplied string `json:"notApplied,omitempty"`
	// LastError is the latest read of the files that failed, left out where none did.
	LastError *LoadError `json:"lastError,omitempty"`
	Counters  Counters   `json:"counters"`
	// Warnings say what is wrong though lookups are answered.
	Warnings []string `json:"warnings,omitempty"`
	Build    Build    `json:"build"`
}

// Routing is what routing.json and the snapshots that it names say. All of it is of one moment.
type Routing struct {
	// Ring is the namespace and name of the HashRing, UID its UID, "" for files that were built without a cluster.
	Ring string `json:"ring"`
	UID  string `json:"uid,omitempty"`
	// Generation and LeaderEpoch are those of routing.json. LeaderEpoch is 0 where the file has none.
	Generation  int64 `json:"generation"`
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// LoadedAt is when the agent switched to it.
	LoadedAt time.Time `json:"loadedAt"`
	// Stable is the ring that answers, Candidate the one that a migration goes to; nil where there is none.
	Stable    Ring  `json:"stable"`
	Candidate *Ring `json:"candidate,omitempty"`
	// BasisPoints is how many of 10,000 buckets of keys the candidate answers here, by routing.json; what Forced does to it is not
	// in this figure.
	BasisPoints int `json:"basisPoints"`
}

// Ring is one of the two rings.
type Ring struct {
	Digest  string `json:"digest"`
	Version string `json:"version"`
	// Revision is the ring's number among those of its HashRing, 0 where that is not known.
	Revision int64  `json:"revision,omitempty"`
	Encoding string `json:"encoding"`
	// Backends counts those of the ring, drained ones included, Down those of them that are passed over because routing.json
	// says so.
	Backends int `json:"backends"`
	Down     int `json:"down"`
	Points   int `json:"points"`
}

// LoadError says why files were not taken.
type LoadError struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// File, Value and Limit say which file, what was found in it and what would have been taken.
	File  string    `json:"file,omitempty"`
	Value string    `json:"value,omitempty"`
	Limit string    `json:"limit,omitempty"`
	Time  time.Time `json:"time"`
	// Current says that no read has succeeded since.
	Current bool `json:"current"`
}

// Counters count from the start of the process.
type Counters struct {
	Loads       uint64            `json:"loads"`
	LoadErrors  map[string]uint64 `json:"loadErrors"`
	LoadSeconds float64           `json:"loadSeconds"`
	// Selections counts lookups that were answered, Failovers those of them in which the owner was passed over, and Errors the times
	// that a backend which was tried gave no answer, or not all of one, as [RingCounters] says.
	Selections uint64 `json:"selections"`
	Failovers  uint64 `json:"failovers"`
	Errors     uint64 `json:"errors"`
	// Rings has the same by ring, those that are loaded first.
	Rings     []RingCounters `json:"rings"`
	BytesHeld int64          `json:"bytesHeld"`
}

// RingCounters count the lookups that one ring answered in one role, and what became of the backends that it gave, as far as the
// agent saw that: its proxy does, and a program that asks for owners and connects to them by itself does not tell.
type RingCounters struct {
	// Role is "stable" or "candidate".
	Role     string `json:"role"`
	Revision int64  `json:"revision,omitempty"`
	Digest   string `json:"digest"`
	// Selections counts the lookups, Failovers those of them in which the owner was passed over.
	Selections uint64 `json:"selections"`
	Failovers  uint64 `json:"failovers"`
	// Errors counts attempts at backends that this ring gave, one for each backend that was tried: no connection could be made,
	// or the backend closed it or was silent for too long before it had given all of its answer, or it had too many requests of this agent already.
	// Not counted are answers, whatever their status, kept connections that had ended, and what the client or this host is
	// to blame for. A request that was tried at three backends can count three.
	Errors uint64 `json:"errors"`
}

// Build says which program it is.
type Build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}
