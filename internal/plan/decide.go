// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

// DefaultMinInterval is spec.publication.minInterval where spec does not set it; the schema has the same default.
const DefaultMinInterval = 5 * time.Second

// Decision is what to do for one HashRing now.
type Decision struct {
	// Refusal says why what spec asks for is not published; nil where it is, or has been, or is held or waits.
	Refusal *Refusal
	// Problems are what is wrong with sources and their endpoints.
	Problems []Problem
	// Hold is what keeps the ring from following spec or its sources; nil where nothing does.
	Hold *Hold
	// Candidate is the ring that waits, or that a RingMigration goes to; nil where there is none, or it is not wanted any more.
	Candidate *Candidate
	// Frozen says that what is published stays as it is for a RingMigration; nil where it follows spec.
	Frozen *Frozen
	// Members says who waits to join or leave; nil where that is not known.
	Members *Members
	// Load are the factors on the weights of backends; nil where nobody has looked.
	Load *LoadWeights
	// Moved is how many positions of the key space have another owner than on the ring that was published last; nil where
	// there is none, it is the same ring, or both are so large that it is not worth finding out.
	Moved *uint64
	// Wait is how long a newer ring has to wait for minInterval; 0 where it has not.
	Wait time.Duration
	// Desired and Publication are what the cluster shall hold. With a Refusal they are the last good ring where that is to be
	// kept up to date or restored, and otherwise nil.
	Desired     *Desired
	Publication *Publication
	// Writes are the ConfigMaps of Publication that the cluster does not hold as they shall be, in order. With Wait those that nobody
	// has.
	Writes []ConfigMap
	// Step is what Writes are in a migration; "" where they are none of it.
	Step Step
	// LiveLock says that the lock in the status has to be read from the API server before Writes, and after what they replace was seen:
	// a lock in a cache that is behind must not raise a share that was lowered since.
	LiveLock bool
	// Records are to be written before Writes; there are none with Wait.
	Records []Record
	// Deletes are the names of ConfigMaps of ours that an earlier spec asked for. There are none before the cluster holds all
	// of Publication, so that the routing file that is there does not name them.
	Deletes []string
	// Outdated are records to be deleted after Writes.
	Outdated []Recorded
	// Restores says that Records and Writes only bring back what was published before and has been edited or deleted since.
	Restores bool
	// LastGoodIntact says that the ring in status.active is in the cluster as it was published.
	LastGoodIntact bool
	// Refresh is what is known of the pods that are touched for what is published. It is found out after the decision, which does not
	// depend on it; nil where nobody has looked.
	Refresh *Refresh

	consumers acknowledgement
}

// Decide plans the next step for a HashRing from its spec and status and what was seen of its sources and its publication.
// Rings come from b, which is [Afresh] or remembers what that returned.
func Decide(r *v1alpha1.HashRing, b Builder, seen Observation, now time.Time) Decision {
	d := decide(r, b, seen, now)
	d.acknowledge(r, seen)
	return d
}

func decide(r *v1alpha1.HashRing, b Builder, seen Observation, now time.Time) Decision {
	d := Decision{LastGoodIntact: lastGoodIntact(r, seen)}
	desired := choose(&d, r, b, seen, now)
	if desired == nil {
		d.Candidate = nil // There is nothing that it could follow.
		return d
	}
	if d.Candidate != nil && d.Candidate.Slot == "" {
		d.Candidate.Revision = nextRevision(r.Status, desired.Ring.Digest(), seen) + 1
	}
	err := conflict(r, seen)
	if err == nil {
		d.Publication, err = publication(r, desired, seen)
	}
	if err == nil {
		d.Records, err = records(r, d.Publication, desired, seen)
	}
	if err != nil {
		d.Refusal = asRefusal(err)
		d.Publication = nil
		return d
	}
	d.Desired = desired
	if c := desired.Candidate; c != nil && d.Candidate != nil && d.Candidate.Slot != "" {
		d.Candidate.Revision = c.Revision
	}
	if d.Hold != nil && d.Hold.Token != "" { // Backends that join make another revision of what is held.
		d.Hold.Token = lossToken(d.Hold.Backends, d.Publication.Revision)
	}
	d.carryOut(r, seen, now)
	return d
}

// carryOut decides what is written and deleted for the desired ring.
func (d *Decision) carryOut(r *v1alpha1.HashRing, seen Observation, now time.Time) {
	d.Writes = d.inOrder(r, seen)
	d.Step = d.step(r, seen)
	d.LiveLock = d.Step != "" || r.Status.Migration != nil && lastRouting(seen).Generation == 0
	old := published(r.Status, d.Publication, d.Desired)
	d.Restores = old && r.Status.ObservedGeneration == r.Generation && d.Step == "" // Else it can be chunks that are new.
	d.Outdated = outdated(r, d.Publication.Revision, seen, writesSlot(r, d.Writes, d.Desired.slot()))
	switch {
	case len(d.Writes) == 0:
		d.Deletes = d.leftovers(r, seen)
	case d.Step != "": // A share that is lowered must be so at once. The others are few.
	case !old && d.LastGoodIntact:
		d.Wait = max(wait(r, r.Status.Active.PublishedAt.Time, now), wait(r, seen.PublishedAt, now))
	case !old && unedited(r, seen): // The status is behind, or what is seen is. It is newer, or will be, and as it was published.
		d.Wait = wait(r, seen.PublishedAt, now)
	}
	if d.Wait > 0 {
		d.Records, d.Outdated = nil, nil
		// Pods that mount what is missing cannot start, and nothing of the last good ring is.
		d.Writes = slices.DeleteFunc(d.Writes, func(cm ConfigMap) bool { return seen.find(cm.Name).Holder != Nobody })
	}
}

// activeChunks returns the names of the ConfigMaps that the ring in status.active is in; none where there is no such ring.
func activeChunks(r *v1alpha1.HashRing) []string {
	if r.Status.Active == nil {
		return nil
	}
	count := 1
	if s := r.Status.Snapshot; s != nil {
		count = max(int(s.Chunks), 1) // It is 0 in a status of an older version.
	}
	var names []string
	for chunk := range count {
		names = append(names, ChunkName(r.Name, routing.Slot(r.Status.Active.Slot), chunk))
	}
	return names
}

// leftovers returns the names of what is ours and no part of the publication.
func (d *Decision) leftovers(r *v1alpha1.HashRing, seen Observation) []string {
	var names []string
	for _, o := range seen.Chunks {
		wanted := slices.ContainsFunc(d.Publication.ConfigMaps, func(cm ConfigMap) bool { return cm.Name == o.Name }) || d.keeps(r, o)
		if o.Holder == Ours && !wanted {
			names = append(names, o.Name)
		}
	}
	return names
}

// wait returns how long a publication has to wait for the one before it to be minInterval old. A publication in the
// future was made by a clock that is ahead: nothing is known of its age, and nobody shall wait for that clock.
func wait(r *v1alpha1.HashRing, last, now time.Time) time.Duration {
	age, interval := now.Sub(last), minInterval(r.Spec)
	if age < 0 || age >= interval {
		return 0
	}
	return interval - age
}

func asRefusal(err error) *Refusal {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	return &Refusal{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
}

// Names returns the names of all ConfigMaps that are published for r.
func Names(r *v1alpha1.HashRing) []string {
	names := []string{RoutingName(r.Name)}
	for chunk := range chunks(r.Spec) {
		names = append(names, ChunkName(r.Name, routing.SlotA, chunk), ChunkName(r.Name, routing.SlotB, chunk))
	}
	return names
}

// conflict refuses to publish while a name is taken. Nothing at all is written then: half a publication helps nobody.
func conflict(r *v1alpha1.HashRing, seen Observation) error {
	for _, name := range Names(r) {
		if o := seen.find(name); o.Holder == Foreign {
			return Taken("ConfigMap", r.Namespace, o.Name)
		}
	}
	return nil
}

// Taken refuses to publish because somebody else has an object of a name that is needed.
func Taken(kind, namespace, name string) *Refusal {
	return &Refusal{Reason: v1alpha1.ReasonNameConflict, Message: fmt.Sprintf(
		"%s %s/%s exists and was not made by Ringwright: delete or rename it, or rename the HashRing", kind, namespace, name)}
}

// lastGoodIntact compares what is there with what the status says was published. Of the snapshot only chunks are known, so
// their annotations say what they are parts of; readers compare the digest of the whole.
func lastGoodIntact(r *v1alpha1.HashRing, seen Observation) bool {
	s := r.Status
	if s.Active == nil || s.Routing == nil || seen.Routing.FileDigest != s.Routing.Digest {
		return false
	}
	for _, name := range activeChunks(r) {
		if o := seen.find(name); !o.holdsRing() || o.Annotations[v1alpha1.AnnotationDigest] != s.Active.Digest {
			return false
		}
	}
	return candidateIntact(r, seen)
}

// candidateIntact says that the candidate that the routing file names, if it does, is in its slot.
func candidateIntact(r *v1alpha1.HashRing, seen Observation) bool {
	candidate := lastRouting(seen).Candidate
	return candidate == nil || holds(r.Name, *candidate, seen)
}

// unedited says that nobody has edited or deleted what is published, whatever the status knows of it.
func unedited(r *v1alpha1.HashRing, seen Observation) bool {
	return r.Status.Active != nil && candidateIntact(r, seen) && !slices.ContainsFunc(append(activeChunks(r), RoutingName(r.Name)), func(name string) bool {
		o := seen.find(name)
		return o.Holder != Ours || !o.intact()
	})
}

// published says that p is what the status says was published.
func published(s v1alpha1.HashRingStatus, p *Publication, d *Desired) bool {
	return s.Active != nil && s.Routing != nil && s.Active.Digest == d.Ring.Digest() && s.Active.Revision == p.Revision &&
		s.Routing.Generation == p.Generation && s.Routing.Digest == p.RoutingDigest
}

func minInterval(spec v1alpha1.HashRingSpec) time.Duration {
	if spec.Publication.MinInterval == nil {
		return DefaultMinInterval
	}
	return spec.Publication.MinInterval.Duration
}
