// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// verification is a publication under examination, with what has been understood of it so far.
type verification struct {
	*publication
	report *VerifyReport
	// file is nil where the routing file cannot be read, or there is none.
	file *routing.File
	// ring is nil where the stable snapshot cannot be opened, candidate where there is none or it cannot be.
	ring, candidate *ring.Ring
}

// verify makes every check that the source allows.
func verify(p *publication) *verification {
	v := &verification{publication: p, report: &VerifyReport{Source: p.origin}}
	if p.bare != nil {
		v.ring = v.checkSnapshot(p.bare)
		return v
	}
	v.checkRouting()
	stable, other := v.slotsByRole()
	v.checkReference(stable)
	v.ring = v.checkSnapshot(stable)
	v.checkVersion(stable)
	if v.file != nil && v.file.Candidate != nil {
		v.checkCandidate(other, *v.file.Candidate)
		v.checkAddresses()
	} else {
		v.checkAddresses()
		v.checkOtherSlot(other)
	}
	v.checkSpares()
	if p.cluster != nil {
		v.checkConfigMaps()
		v.checkStatus()
	}
	return v
}

// checkRouting checks that routing.json is what a writer would have written.
func (v *verification) checkRouting() {
	const canonical = "is canonical"
	a := v.routing
	if a.err != nil {
		v.report.check(a.path, canonical, a.err)
		return
	}
	file, err := routing.Parse(a.data)
	if err == nil {
		v.file = &file
		var again []byte
		again, err = file.Encode()
		if err == nil && !bytes.Equal(again, a.data) {
			err = errors.New("its bytes are not those that its content is written in: something else has edited it")
		}
	}
	v.report.check(a.path, canonical, err)
}

// slotsByRole returns the slot that answers and the other one. Without a routing file it is slot a, where the first ring
// of a HashRing is.
func (v *verification) slotsByRole() (stable, other *artifact) {
	if v.file != nil && v.file.Stable.Slot == routing.SlotB {
		return v.slots[routing.SlotB], v.slots[routing.SlotA]
	}
	return v.slots[routing.SlotA], v.slots[routing.SlotB]
}

func (v *verification) checkReference(stable *artifact) {
	const check = "has the digest that routing.json names"
	if v.file == nil {
		v.report.skip(stable.path, check, "there is no routing.json that can be read")
		return
	}
	v.report.check(stable.path, check, checkDigest(stable, v.file.Stable))
}

// checkSnapshot checks what the bytes of a snapshot tell by themselves. It returns nil where it cannot be opened.
func (v *verification) checkSnapshot(a *artifact) *ring.Ring {
	const rebuilt = "building its backends again gives the same bytes"
	r, err := openSnapshot(a)
	if !v.report.check(a.path, "is in canonical form", trimSubject(err, a)) {
		v.report.skip(a.path, rebuilt, "it cannot be read")
		return nil
	}
	v.report.check(a.path, rebuilt, r.Verify())
	return r
}

// trimSubject takes the name of the file off a message that is printed behind it.
func trimSubject(err error, a *artifact) error {
	if a.err == nil && err != nil {
		return errors.Unwrap(err)
	}
	return err
}

// namedVersion is the check of what routing.json says of the algorithm.
const namedVersion = "has the algorithm that routing.json names"

func (v *verification) checkVersion(stable *artifact) {
	if v.file == nil || v.ring == nil {
		v.report.skip(stable.path, namedVersion, "one of the two cannot be read")
		return
	}
	v.report.check(stable.path, namedVersion, checkVersion(v.ring, v.file.Stable))
}

// checkAddresses checks what routing.json says of the backends of the rings that it names.
func (v *verification) checkAddresses() {
	const addresses = "has the addresses that the ring needs"
	switch {
	case v.file == nil || v.ring == nil:
		v.report.skip(v.routing.path, addresses, "one of the two cannot be read")
	case v.candidate != nil:
		v.report.check(v.routing.path, addresses, checkAddresses(*v.file, v.ring, v.candidate))
	default:
		v.report.check(v.routing.path, addresses, checkAddresses(*v.file, v.ring))
	}
}

// checkOtherSlot checks the slot that does not answer: it always exists, so that no pod needs an optional source.
func (v *verification) checkOtherSlot(other *artifact) {
	_, err := openSnapshot(other)
	if errors.Is(err, ring.ErrEmptySlot) {
		err = nil
	}
	v.report.check(other.path, "is empty or holds a ring", trimSubject(err, other))
}

// checkSpares checks the chunks that nothing is in: a reader may take all files of a slot for the snapshot.
func (v *verification) checkSpares() {
	for _, a := range v.spares {
		err := a.err
		if err == nil && len(a.data) > 0 {
			err = fmt.Errorf("it has %d bytes, and no snapshot that needs them", len(a.data))
		}
		v.report.check(a.path, "is empty, as it is not needed", err)
	}
}

// checkConfigMaps checks that annotations say what the payload is.
func (v *verification) checkConfigMaps() {
	content := func(a *artifact, cm *corev1.ConfigMap) {
		if cm != nil { // That it does not exist has been said.
			v.annotation(a, cm, v1alpha1.AnnotationContentDigest, plan.ContentDigest(cm.Data, cm.BinaryData))
		}
	}
	content(v.routing, v.cluster.routing)
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		for _, c := range v.cluster.slots[slot] {
			content(c.artifact, c.object)
		}
	}
	if v.file == nil {
		return
	}
	v.annotation(v.routing, v.cluster.routing, v1alpha1.AnnotationGeneration, strconv.FormatInt(v.file.Generation, 10))
	v.checkSlot(v.file.Stable, v.ring)
	if v.file.Candidate != nil {
		v.checkSlot(*v.file.Candidate, v.candidate)
	}
}

// checkSlot checks what the annotations of a slot say of its ring, which is nil where it cannot be opened.
func (v *verification) checkSlot(ref routing.Reference, r *ring.Ring) {
	for _, c := range v.cluster.slots[ref.Slot][:len(ref.Files())] {
		if c.object != nil {
			v.annotation(c.artifact, c.object, v1alpha1.AnnotationDigest, ref.Digest)
		}
		if c.object != nil && r != nil {
			v.annotation(c.artifact, c.object, v1alpha1.AnnotationEncoding, r.Encoding().String())
		}
	}
}

func (v *verification) annotation(a *artifact, cm *corev1.ConfigMap, key, want string) {
	v.report.equal(a.path, "has the right annotation "+key, cm.Annotations[key], want)
}

// checkStatus checks that the status of the HashRing says what is published.
func (v *verification) checkStatus() {
	const active, routed = "status.active is what is published", "status.routing is what is published"
	subject, status := v.origin, v.cluster.ring.Status
	if v.file == nil {
		v.report.skip(subject, active, "there is no routing.json that can be read")
		return
	}
	v.report.check(subject, "what is to be published is", v.cluster.unpublished())
	v.report.equal(subject, "its UID is that of routing.json", string(v.cluster.ring.UID), v.file.UID)
	if status.Active == nil || status.Routing == nil {
		v.report.check(subject, active, errors.New("the status names no published ring"))
		return
	}
	if v.cluster.slots[v.file.Stable.Slot][0].object == nil {
		v.report.skip(subject, active, "there is no slot to compare it with")
		return
	}
	v.report.equal(subject, active,
		fmt.Sprintf("revision %d in slot %s, %s", status.Active.Revision, status.Active.Slot, status.Active.Digest),
		fmt.Sprintf("revision %d in slot %s, %s", v.cluster.revision(v.file.Stable.Slot), v.file.Stable.Slot, v.file.Stable.Digest))
	v.checkCandidateStatus()
	v.report.equal(subject, routed,
		fmt.Sprintf("generation %d, %s", status.Routing.Generation, status.Routing.Digest),
		fmt.Sprintf("generation %d, %s", v.file.Generation, ring.Digest(v.routing.data)))
}

// checkManifest checks that the operator would publish the same for this HashRing.
func (v *verification) checkManifest(name string, hashRing *v1alpha1.HashRing) {
	const same, routed = "gives the published snapshot", "gives the published routing.json"
	// What a V3 ring has trimmed depends on the ring before, and rings that are built from their own trims are the same.
	load := hashRing.Status.LoadWeights
	if v.cluster != nil && v.cluster.ring != nil {
		load = v.cluster.ring.Status.LoadWeights // Of a WeightPolicy, which the manifest does not know.
	}
	desired, err := plan.BuildLoaded(hashRing.Spec, load, v.ring)
	if err != nil {
		v.report.check(name, same, err)
		return
	}
	stable := v.bare
	if stable == nil {
		stable, _ = v.slotsByRole()
	}
	if v.file != nil && v.file.Candidate != nil {
		v.checkManifestOfBoth(name, desired.Ring)
		return
	}
	v.report.check(name, same, compareRings(desired.Ring, v.ring, stable))
	if v.file == nil {
		return
	}
	desired.Slot = v.file.Stable.Slot
	// UID, slot and numbers are not in a manifest; they are taken as published.
	ref := plan.Ref{Namespace: hashRing.Namespace, Name: hashRing.Name, UID: types.UID(v.file.UID)}
	expected, err := plan.Render(ref, desired, plan.Numbers{
		Revision: v.file.Stable.Revision, Generation: v.file.Generation, LeaderEpoch: v.file.LeaderEpoch,
	})
	if err == nil && !bytes.Equal(expected.Files()[routing.FileName], v.routing.data) {
		err = errors.New("it names another snapshot or other addresses")
	}
	v.report.check(name, routed, err)
}

// compareRings says in what a published ring differs from the one that a manifest asks for.
func compareRings(want *plan.Ring, got *ring.Ring, a *artifact) error {
	switch {
	case a.err != nil:
		return a.err
	case bytes.Equal(want.Snapshot(), a.data):
		return nil
	case got == nil:
		return fmt.Errorf("%s cannot be read", a.path)
	}
	return fmt.Errorf("it gives %s, published is %s", summary(want, want.Snapshot()), summary(got, a.data))
}

// summarised is a ring, built or published.
type summarised interface {
	Algorithm() ring.Algorithm
	Len() int
	PointCount() int
}

func summary(r summarised, snapshot []byte) string {
	return fmt.Sprintf("%s (%s with %s, %d backends, %d points)",
		ring.Digest(snapshot), r.Algorithm().Version, pointsText(describeAlgorithm(r.Algorithm())), r.Len(), r.PointCount())
}
