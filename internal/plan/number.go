// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// publication numbers the desired ring and renders it. A number grows only with what it counts, so that what was lost is
// written again as it was.
func publication(r *v1alpha1.HashRing, d *Desired, seen Observation) (*Publication, error) {
	ref := Ref{Namespace: r.Namespace, Name: r.Name, UID: r.UID}
	revision := nextRevision(r.Status, d.Ring.Digest(), seen)
	if c := d.Candidate; c != nil {
		c.Revision = candidateRevision(r.Status, revision, c.Ring.Digest(), seen)
	}
	last := lastRoutingNumbers(r.Status, seen)
	if last.Generation == 0 {
		return Render(ref, d, Numbers{revision, 1, seen.LeaderEpoch})
	}
	same, err := Render(ref, d, Numbers{revision, last.Generation, last.LeaderEpoch})
	if err != nil || same.RoutingDigest == last.Digest {
		return same, err
	}
	return Render(ref, d, Numbers{revision, last.Generation + 1, max(last.LeaderEpoch, seen.LeaderEpoch)})
}

// LastLeaderEpoch returns the leader epoch of the routing file that was published last, 0 where there was none. An operator of a
// lower one no longer leads.
func LastLeaderEpoch(r *v1alpha1.HashRing, seen Observation) int64 {
	return lastRoutingNumbers(r.Status, seen).LeaderEpoch
}

// nextRevision returns the last revision where its digest is the same, otherwise the next one whose number is not taken by
// the record of another ring. Such a one is left over where a crash came between a record and its publication, and spec
// changed meanwhile.
func nextRevision(s v1alpha1.HashRingStatus, digest string, seen Observation) int64 {
	last, lastDigest := lastPublished(s, seen)
	if last > 0 && lastDigest == digest {
		return last
	}
	if p := lastPair(s, seen); p != nil && p.candidate.Digest != digest {
		last = max(last, p.candidate.Revision) // Readers have seen it, although its record may be lost.
	}
	return freeRevision(last+1, digest, seen)
}

// freeRevision returns the first number from next on that is not taken by the record of another ring.
func freeRevision(next int64, digest string, seen Observation) int64 {
	for _, o := range seen.History { // They ascend.
		if o.Holder == Ours && o.Revision == next && o.FileDigest != digest {
			next++
		}
	}
	return next
}

// candidateRevision returns the number of the candidate beside the ring of a revision: the one that it was published or recorded under,
// or the next one. It is above that of the ring even where the same was published long before: numbers never go back.
func candidateRevision(s v1alpha1.HashRingStatus, stable int64, digest string, seen Observation) int64 {
	if p := lastPair(s, seen); p != nil && p.candidate.Digest == digest && p.candidate.Revision > stable {
		return p.candidate.Revision
	}
	for _, o := range seen.History {
		if o.Holder == Ours && o.FileDigest == digest && o.Revision > stable {
			return o.Revision
		}
	}
	return freeRevision(stable+1, digest, seen)
}

// lastPublished returns the revision that was published last and the digest of its snapshot; 0 and "" where there was none.
//
// The status knows. What is published is believed where it is newer, because a status was lost, was not written before a
// crash, or is still behind in the cache; and only where it was not edited. The first chunk of the slot speaks for all: it is
// the first to be written. Where the slot was lost, the routing file tells; where neither is left, the newest record.
func lastPublished(s v1alpha1.HashRingStatus, seen Observation) (int64, string) {
	slot := seen.slot(lastSlot(s, seen))
	last, digest := number(slot.Annotations, v1alpha1.AnnotationRevision), slot.Annotations[v1alpha1.AnnotationDigest]
	if !slot.intact() {
		last = 0 // Edited.
	}
	if file := lastRouting(seen); file.Stable.Revision > last {
		last, digest = file.Stable.Revision, file.Stable.Digest
	}
	if a := s.Active; a != nil && (a.Revision >= last || a.Digest == digest) {
		return a.Revision, a.Digest
	}
	if last > 0 {
		return last, digest
	}
	for _, o := range slices.Backward(seen.History) {
		if o.Holder == Ours {
			return o.Revision, o.FileDigest
		}
	}
	return 0, ""
}

// lastRoutingNumbers returns what the last routing file counted, and the digest that it had; zero where there was none.
//
// As with the revision, the status knows, and what is published is believed where it is newer and was not edited.
func lastRoutingNumbers(s v1alpha1.HashRingStatus, seen Observation) v1alpha1.Routing {
	file := seen.Routing
	last := number(file.Annotations, v1alpha1.AnnotationGeneration)
	if !file.intact() {
		last = 0
	}
	if known := s.Routing; known != nil && (known.Generation >= last || known.Digest == file.FileDigest) {
		return *known
	}
	return v1alpha1.Routing{Generation: last, Digest: file.FileDigest, LeaderEpoch: lastRouting(seen).LeaderEpoch}
}
