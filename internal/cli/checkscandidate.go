// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// checkCandidate checks the ring that a migration goes to as the one that answers is checked.
func (v *verification) checkCandidate(a *artifact, ref routing.Reference) {
	v.report.check(a.path, "has the digest that routing.json names for the candidate", checkDigest(a, ref))
	v.candidate = v.checkSnapshot(a)
	if v.candidate == nil {
		v.report.skip(a.path, namedVersion, "it cannot be read")
		return
	}
	v.report.check(a.path, namedVersion, checkVersion(v.candidate, ref))
}

// checkCandidateStatus checks what the status says of the candidate that is published. It says nothing where spec does not ask for it
// any more.
func (v *verification) checkCandidateStatus() {
	const check = "status.candidate is what is published"
	published, status := v.file.Candidate, v.cluster.ring.Status.Candidate
	switch {
	case published == nil && (status == nil || status.Slot == ""):
	case published == nil:
		v.report.check(v.origin, check, fmt.Errorf("it says slot %s, and routing.json names no candidate", status.Slot))
	case status == nil:
		v.report.skip(v.origin, check, "spec does not ask for the candidate any more")
	default:
		v.report.equal(v.origin, check,
			fmt.Sprintf("revision %d in slot %s, %s", status.Revision, status.Slot, status.Digest),
			fmt.Sprintf("revision %d in slot %s, %s", published.Revision, published.Slot, published.Digest))
	}
}

// checkManifestOfBoth checks that a manifest gives one of two published rings: it asks for the candidate while a migration runs, and
// for the other one again where that is to go back. What else routing.json says is not in a manifest then.
func (v *verification) checkManifestOfBoth(name string, want *plan.Ring) {
	stable, candidate := v.slotsByRole()
	var err error
	if want.Digest() != v.file.Candidate.Digest {
		err = compareRings(want, v.ring, stable)
	}
	if err != nil && v.candidate != nil {
		err = fmt.Errorf("%w, with the candidate %s", err, summary(v.candidate, candidate.data))
	}
	v.report.check(name, "gives the published snapshot, or the candidate", err)
	v.report.skip(name, "gives the published routing.json", "the split of a migration is not in a manifest")
}
