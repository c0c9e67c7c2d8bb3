// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

// otherSlot returns the slot that is not slot.
func otherSlot(slot routing.Slot) routing.Slot {
	if slot == routing.SlotB {
		return routing.SlotA
	}
	return routing.SlotB
}

// slot returns the first ConfigMap of a slot.
func (o Observation) slot(slot routing.Slot) Object {
	if slot == routing.SlotB {
		return o.SlotB
	}
	return o.SlotA
}

// inSlot says that a ConfigMap of that name is one of a slot.
func inSlot(ringName, name string, slot routing.Slot) bool {
	for chunk := range routing.MaxChunks {
		if name == ChunkName(ringName, slot, chunk) {
			return true
		}
	}
	return false
}

// holdsRing says that a ring was written into a chunk, and that nobody has edited it.
func (o Object) holdsRing() bool {
	return o.Holder == Ours && o.intact() && o.Annotations[v1alpha1.AnnotationDigest] != ""
}

// lastSlot returns the slot that the ring which was published last is in. The routing file says so, and the status where that is newer
// or the file was edited. Where both are lost, it is the one that has a ring; of two the one of the lower number, because a candidate
// that was not promoted has the higher one. The first ring goes into slot a.
func lastSlot(s v1alpha1.HashRingStatus, seen Observation) routing.Slot {
	switch file := lastRouting(seen); {
	case file.Generation > 0 && !statusAhead(s, file):
		return file.Stable.Slot
	case s.Active != nil && s.Active.Slot != "":
		return routing.Slot(s.Active.Slot)
	}
	a, b := heldRevision(seen.SlotA), heldRevision(seen.SlotB)
	if b > 0 && (a == 0 || b < a) {
		return routing.SlotB
	}
	return routing.SlotA
}

// statusAhead says that the status is about a newer routing file than the one that was seen: the cache of one is behind that of the
// other.
func statusAhead(s v1alpha1.HashRingStatus, file routing.File) bool {
	return s.Active != nil && s.Routing != nil && s.Routing.Generation > file.Generation
}

// heldRevision returns the number of the ring in a slot; 0 where there is none.
func heldRevision(o Object) int64 {
	if !o.holdsRing() {
		return 0
	}
	return number(o.Annotations, v1alpha1.AnnotationRevision)
}

// pair is a candidate that is published, and which keys it answers.
type pair struct {
	candidate routing.Reference
	// split is nil where no key goes to the candidate, or the routing file that said which was lost.
	split *routing.Split
}

// lastPair returns the candidate that was published last; nil where none was. As with the slot, the routing file says so, or the
// status.
func lastPair(s v1alpha1.HashRingStatus, seen Observation) *pair {
	if file := lastRouting(seen); file.Generation > 0 && !statusAhead(s, file) {
		if file.Candidate == nil {
			return nil
		}
		return &pair{candidate: *file.Candidate, split: file.Split}
	}
	if c := s.Candidate; c != nil && c.Slot != "" {
		return &pair{candidate: routing.Reference{
			Slot: routing.Slot(c.Slot), Digest: c.Digest, Version: string(c.Algorithm.Version), Revision: c.Revision,
		}}
	}
	return nil
}

// Wanted returns the digests of the rings that are needed beside the one that was published last: of the candidate that a
// RingMigration asks for, and of the one that is published.
func Wanted(r *v1alpha1.HashRing, seen Observation) []string {
	lock := r.Status.Migration
	if lock != nil && lock.Phase == v1alpha1.LockLocked {
		return nil
	}
	var digests []string
	if lock != nil && lock.Candidate != "" {
		digests = append(digests, lock.Candidate)
	}
	if p := lastPair(r.Status, seen); p != nil && !slices.Contains(digests, p.candidate.Digest) {
		digests = append(digests, p.candidate.Digest)
	}
	return digests
}

// KeptSources returns where a ring of a digest can be found, the best first: records, the newest first, then slots.
func KeptSources(digest string, seen Observation) []Source {
	var list []Source
	for _, o := range slices.Backward(seen.History) {
		if o.Holder == Ours && o.FileDigest == digest {
			list = append(list, Source{Record: &o, Digest: digest})
		}
	}
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		if o := seen.slot(slot); o.intact() && o.Annotations[v1alpha1.AnnotationDigest] == digest {
			list = append(list, Source{Slot: slot, Digest: digest})
		}
	}
	return list
}

// PublishedState is what readers find of a ring.
type PublishedState struct {
	// File is routing.json; its generation is 0 where there is none, or somebody has edited it.
	File routing.File
	// Complete says that the snapshots that it names are in their slots.
	Complete bool
	// Emptied says that the slot that the stable ring is not in holds no snapshot.
	Emptied bool
}

// StateOf says what is published for a ring.
func StateOf(ringName string, seen Observation) PublishedState {
	file := lastRouting(seen)
	if file.Generation == 0 {
		return PublishedState{}
	}
	state := PublishedState{File: file, Complete: holds(ringName, file.Stable, seen), Emptied: true}
	if file.Candidate != nil {
		state.Complete = state.Complete && holds(ringName, *file.Candidate, seen)
	}
	for _, o := range seen.all() {
		if inSlot(ringName, o.Name, otherSlot(file.Stable.Slot)) && (!o.intact() || o.Annotations[v1alpha1.AnnotationDigest] != "") {
			state.Emptied = false
		}
	}
	return state
}

// holds says that the snapshot which a reference names is in its slot, and that nobody has edited it.
func holds(ringName string, ref routing.Reference, seen Observation) bool {
	for chunk := range ref.Files() {
		o := seen.find(ChunkName(ringName, ref.Slot, chunk))
		if !o.holdsRing() || o.Annotations[v1alpha1.AnnotationDigest] != ref.Digest {
			return false
		}
	}
	return true
}
