// SPDX-License-Identifier: Apache-2.0

package migrationapi

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// maxStale is how many consumers a fleet names.
const maxStale = 8

// Fleets sums up the consumers of a ring by datacenter, in the order of the names. They are judged by the routing file that is published,
// and it is enough that they have one from since on, which is the version in which the present split was first seen; zero where that is
// not known. Consumers that never answered have no datacenter.
func Fleets(ring string, file routing.File, since migration.Version, list []plan.Consumer) []migration.Fleet {
	asked := plan.AskedBy(file)
	version := migration.Version{Epoch: file.LeaderEpoch, Generation: file.Generation}
	if since == (migration.Version{}) {
		since = version
	}
	fleets := map[string]*migration.Fleet{}
	for _, c := range list {
		name := ""
		if c.Said != nil {
			name = c.Said.Datacenter
		}
		f := fleets[name]
		if f == nil {
			f = &migration.Fleet{Ring: ring, Datacenter: name, Version: since}
			fleets[name] = f
		}
		f.Total++
		if c.Said != nil && c.Failure == "" && c.Waits == "" {
			f.Reachable++
		}
		reason, _ := asked.JudgeSince(since.Epoch, since.Generation, c)
		switch {
		case reason == "":
			f.Current++
		case len(f.Stale) < maxStale:
			f.Stale = append(f.Stale, fmt.Sprintf("%s (%s)", c.Pod, reason))
		}
	}
	var sorted []migration.Fleet
	for _, name := range slices.Sorted(maps.Keys(fleets)) {
		sorted = append(sorted, *fleets[name])
	}
	return sorted
}

// Published returns what a routing file says, as package migration knows it.
func Published(file routing.File) migration.Published {
	p := migration.Published{
		Version: migration.Version{Epoch: file.LeaderEpoch, Generation: file.Generation}, Stable: file.Stable.Digest,
	}
	if file.Candidate != nil {
		p.Candidate = file.Candidate.Digest
	}
	if file.Split != nil {
		p.Seed, p.Split = file.Split.Seed, migration.Split{}
		for name, share := range file.Split.BasisPoints {
			p.Split[name] = share
		}
	}
	return p
}
