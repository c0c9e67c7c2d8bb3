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
	next := last + 1
	for _, o := range seen.History { // They ascend.
		if o.Holder == Ours && o.Revision == next && o.FileDigest != digest {
			next++
		}
	}
	return next
}

// lastPublished returns the revision that was published last and the digest of its snapshot; 0 and "" where there was none.
//
// The status knows. What is published is believed where it is newer, because a status was lost, was not written before a
// crash, or is still behind in the cache; and only where it was not edited. The first chunk of the slot speaks for all: it is
// the first to be written. Where neither is left, the newest record tells.
func lastPublished(s v1alpha1.HashRingStatus, seen Observation) (int64, string) {
	slot := seen.SlotA
	last, digest := number(slot.Annotations, v1alpha1.AnnotationRevision), slot.Annotations[v1alpha1.AnnotationDigest]
	if !slot.intact() {
		last = 0 // Edited.
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
