// SPDX-License-Identifier: Apache-2.0

// Package movement sees which keys get another backend than they got before: what a migration moves in fact, as the one who asks
// sees it.
//
// # How it is measured
//
// One key in [Sample] is watched, chosen by its hash, so that it is always the same ones. Of those a table of fixed size remembers which backend
// the latest lookup gave first. A lookup of a key that is in the table is a check; one that gives another backend than the one
// before is a change, whatever the reason: the split, another ring, or a backend that is passed over. Both count for the ring that gave the backend now.
//
// Each key has one place in the table, which the latest key that falls to it has: of keys that are asked for rarely many are not seen again. So the
// changes are no count of keys that moved; their part of the checks tells how many lookups of keys in use did.
//
// # Cost
//
// A lookup of a key that is not watched costs a multiplication, one of a key that is a look into the table. There is no
// lock and no allocation. The table has [Bytes] bytes.
package movement

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

const (
	sampleBits = 4
	placeBits  = 15
	roles      = 2
	// Sample is of how many keys one is watched.
	Sample = 1 << sampleBits
	// Places is how many keys the table remembers at a time.
	Places = 1 << placeBits
	// Bytes is how much memory the table takes.
	Bytes = 8 * Places
)

// Table remembers which backend a key had, and counts. It is safe for concurrent use, and a prometheus.Collector. A nil one counts nothing.
type Table struct {
	seed            maphash.Seed
	checks, changes [roles]atomic.Uint64
	// places have the hash of a key in the upper half, and one of its backend in the lower. Two lookups of one place at the same
	// moment can lose one of them.
	places [Places]atomic.Uint64
}

// New returns a table that has seen no key.
func New() *Table { return &Table{seed: maphash.MakeSeed()} }

// Note takes note of what a lookup gave for a key with this ring.Hash. Keys that are asked for with other features are other keys.
func (t *Table) Note(hash uint32, features []string, given ringclient.Decision) {
	if t == nil {
		return
	}
	// The split and the place on the ring depend on the hash in other ways.
	mixed := uint64(hash) * 0x9e3779b97f4a7c15
	if mixed>>(64-sampleBits) != 0 {
		return
	}
	for _, f := range features {
		mixed = (mixed ^ maphash.String(t.seed, f)) * 0x9e3779b97f4a7c15
		hash ^= uint32(mixed >> 32)
	}
	t.note(mixed>>(64-sampleBits-placeBits)&(Places-1), hash, given)
}

func (t *Table) note(place uint64, hash uint32, given ringclient.Decision) {
	// Nothing is 0, so that a place which nobody has had is known.
	now := uint64(hash)<<32 | maphash.String(t.seed, given.ID())&0xffffffff | 1
	was := t.places[place].Load()
	if was != now {
		t.places[place].Store(now)
	}
	if was == 0 || was>>32 != uint64(hash) {
		return
	}
	t.checks[given.Role()].Add(1)
	if was != now {
		t.changes[given.Role()].Add(1)
	}
}

var (
	checksDesc = prometheus.NewDesc("ringwright_agent_owner_checks_total",
		"Lookups of a watched key of which it is known what the one before gave, by the ring that gave the backend.", []string{"role"}, nil)
	changesDesc = prometheus.NewDesc("ringwright_agent_owner_changes_total",
		"Of those, the lookups that gave another backend than the one before.", []string{"role"}, nil)
)

// Describe sends the metrics that Collect sends.
func (t *Table) Describe(out chan<- *prometheus.Desc) {
	out <- checksDesc
	out <- changesDesc
}

// Collect sends the counters, of both roles from the start.
func (t *Table) Collect(out chan<- prometheus.Metric) {
	for role := range roles {
		name := ringclient.Role(role).String()
		out <- prometheus.MustNewConstMetric(checksDesc, prometheus.CounterValue, float64(t.checks[role].Load()), name)
		out <- prometheus.MustNewConstMetric(changesDesc, prometheus.CounterValue, float64(t.changes[role].Load()), name)
	}
}
