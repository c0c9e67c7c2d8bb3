// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

// DefaultTombstone is spec.deletion.tombstone where nothing readable says how long; the schema has the same default.
const DefaultTombstone = 72 * time.Hour

// MaxTombstone is the schema's bound of spec.deletion.tombstone.
const MaxTombstone = 720 * time.Hour

// Tombstone returns how long what is published for a HashRing outlives it.
func Tombstone(spec v1alpha1.HashRingSpec) time.Duration {
	if spec.Deletion.Tombstone == nil {
		return DefaultTombstone
	}
	return spec.Deletion.Tombstone.Duration
}

// Remnant is an object that is left of a HashRing that is gone.
type Remnant struct {
	Name        string
	Annotations map[string]string
}

// Burial is what to do about what is left of a HashRing that is gone: one of Mark and Delete, or to wait.
type Burial struct {
	// Mark is the name of the object on which Until is to be written; "" where it is written already.
	Mark string
	// Until is when what is left is deleted; zero where nothing is left.
	Until time.Time
	// Wait is how long that is from now.
	Wait time.Duration
	// Delete are the names of all that is left, in the order in which it is to be deleted. What says since when comes last, so
	// that a run that was cut short is taken up where it ended.
	Delete []string
}

// Bury plans what becomes of what is left of a HashRing of that name. How long it stays is on the routing ConfigMap, and where that
// is missing, on the first object by name. What cannot be read there counts as the default, from now: that errs on the side of
// those who read the files.
func Bury(ringName string, left []Remnant, now time.Time) Burial {
	if len(left) == 0 {
		return Burial{}
	}
	left = slices.Clone(left)
	slices.SortFunc(left, func(a, b Remnant) int { return compareRemnants(ringName, a, b) })
	stay := tombstoneOf(left)
	until, marked := markOf(left)
	if !marked {
		until = now.Add(stay + time.Second - 1).UTC().Truncate(time.Second) // Rounded up: the mark has whole seconds.
	}
	if stay == 0 || !now.Before(until) {
		burial := Burial{Until: until}
		for _, remnant := range slices.Backward(left) {
			burial.Delete = append(burial.Delete, remnant.Name)
		}
		return burial
	}
	burial := Burial{Until: until, Wait: until.Sub(now)}
	if !marked {
		burial.Mark = left[0].Name
	}
	return burial
}

// compareRemnants puts the routing ConfigMap first, and the others in the order of their names.
func compareRemnants(ringName string, a, b Remnant) int {
	rank := func(r Remnant) int {
		if r.Name == RoutingName(ringName) {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
}

// tombstoneOf returns how long what is left stays.
func tombstoneOf(left []Remnant) time.Duration {
	for _, remnant := range left {
		if stay, err := time.ParseDuration(remnant.Annotations[v1alpha1.AnnotationTombstone]); err == nil && stay >= 0 && stay <= MaxTombstone {
			return stay
		}
	}
	return DefaultTombstone
}

// markOf returns until when what is left stays, where that is written: the latest, where it is written several times because
// what it was on had been gone for a while.
func markOf(left []Remnant) (until time.Time, marked bool) {
	for _, remnant := range left {
		t, err := time.Parse(time.RFC3339, remnant.Annotations[v1alpha1.AnnotationTombstoneUntil])
		if err == nil && (!marked || t.After(until)) {
			until, marked = t.UTC(), true
		}
	}
	return until, marked
}

// FormatUntil returns the value of the annotation that says until when something stays.
func FormatUntil(until time.Time) string { return until.UTC().Format(time.RFC3339) }

// IsConfigMapName says that a ConfigMap of that name is published for a HashRing of that name, under some spec.
func IsConfigMapName(ringName, name string) bool {
	if name == RoutingName(ringName) {
		return true
	}
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		for chunk := range routing.MaxChunks {
			if name == ChunkName(ringName, slot, chunk) {
				return true
			}
		}
	}
	return false
}
