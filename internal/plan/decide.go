// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// DefaultMinInterval is spec.publication.minInterval where spec does not set it; the schema has the same default.
const DefaultMinInterval = 5 * time.Second

// Holder says whose a ConfigMap of a published name is.
type Holder uint8

const (
	// Nobody: there is no ConfigMap of that name.
	Nobody Holder = iota
	// Ours: it was published for this HashRing, or for one of its name that is gone.
	Ours
	// Foreign: somebody else made it.
	Foreign
)

// Object is a published ConfigMap as it is in the cluster, without its payload.
type Object struct {
	Name   string
	Holder Holder
	// ContentDigest is the digest of the payload that is there, not what an annotation says of it.
	ContentDigest string
	// SnapshotDigest is the digest of the file of slot a that is there; "" for the others.
	SnapshotDigest string
	Annotations    map[string]string
	// MetadataIntact says that labels and owner reference are as they shall be.
	MetadataIntact bool
}

// matches says that nothing has to be written for o to be cm.
func (o Object) matches(cm ConfigMap) bool {
	if o.Holder != Ours || !o.MetadataIntact || o.ContentDigest != cm.Annotations[v1alpha1.AnnotationContentDigest] {
		return false
	}
	for key, value := range cm.Annotations {
		if o.Annotations[key] != value {
			return false
		}
	}
	return true
}

// Observation is what the cluster holds of one ring.
type Observation struct {
	SlotA, SlotB, Routing Object
}

func (o Observation) find(name string) Object {
	for _, object := range []Object{o.SlotA, o.SlotB, o.Routing} {
		if object.Name == name {
			return object
		}
	}
	return Object{Name: name}
}

// Decision is what to do for one HashRing now.
type Decision struct {
	// Refusal says why nothing is to be published; nil where something is, or has been.
	Refusal *Refusal
	// Wait is how long a newer ring has to wait for minInterval; 0 where it has not.
	Wait time.Duration
	// Desired and Publication are what the cluster shall hold; nil with a Refusal.
	Desired     *Desired
	Publication *Publication
	// Writes are the ConfigMaps of Publication that the cluster does not hold as they shall be, in order. Empty with Wait.
	Writes []ConfigMap
	// Restores says that Writes only brings back what was published before and has been edited or deleted since.
	Restores bool
	// LastGoodIntact says that the ring in status.active is in the cluster as it was published.
	LastGoodIntact bool
}

// Decide plans the next step for a HashRing from its spec and status and what was seen of its publication.
func Decide(r *v1alpha1.HashRing, seen Observation, now time.Time) Decision {
	d := Decision{LastGoodIntact: lastGoodIntact(r.Status, seen)}
	desired, err := Build(r.Spec)
	if err == nil {
		err = conflict(r, seen)
	}
	if err == nil {
		d.Desired = desired
		d.Publication, err = publication(r, desired, seen)
	}
	if err != nil {
		d.Refusal = asRefusal(err)
		return d
	}
	for _, cm := range d.Publication.ConfigMaps {
		if !seen.find(cm.Name).matches(cm) {
			d.Writes = append(d.Writes, cm)
		}
	}
	d.Restores = published(r.Status, d.Publication, desired)
	if len(d.Writes) > 0 && !d.Restores && d.LastGoodIntact {
		d.Wait = r.Status.Active.PublishedAt.Add(minInterval(r.Spec)).Sub(now)
	}
	if d.Wait > 0 {
		d.Writes = nil
	}
	d.Wait = max(d.Wait, 0)
	return d
}

func asRefusal(err error) *Refusal {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal
	}
	return &Refusal{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()}
}

// conflict refuses to publish while a name is taken. Nothing at all is written then: half a publication helps nobody.
func conflict(r *v1alpha1.HashRing, seen Observation) error {
	for _, o := range []Object{seen.SlotA, seen.SlotB, seen.Routing} {
		if o.Holder == Foreign {
			return refusef(v1alpha1.ReasonNameConflict,
				"ConfigMap %s/%s exists and was not made by Ringwright: delete or rename it, or rename the HashRing", r.Namespace, o.Name)
		}
	}
	return nil
}

// publication numbers the desired ring and renders it. A number grows only with what it counts, so that what was lost is
// written again as it was.
func publication(r *v1alpha1.HashRing, d *Desired, seen Observation) (*Publication, error) {
	ref := Ref{Namespace: r.Namespace, Name: r.Name, UID: r.UID}
	revision := nextRevision(r.Status, d.Ring.Digest(), seen.SlotA)
	generation := number(seen.Routing.Annotations, v1alpha1.AnnotationGeneration)
	digest := ""
	if s := r.Status.Routing; s != nil && s.Generation >= generation {
		generation, digest = s.Generation, s.Digest
	}
	same, err := Render(ref, d, revision, max(generation, 1))
	if err != nil || generation == 0 || same.RoutingDigest == digest {
		return same, err
	}
	if digest == "" && same.routing().Annotations[v1alpha1.AnnotationContentDigest] == seen.Routing.Annotations[v1alpha1.AnnotationContentDigest] {
		return same, nil
	}
	return Render(ref, d, revision, generation+1)
}

func (p *Publication) routing() ConfigMap { return p.ConfigMaps[len(p.ConfigMaps)-1] }

// nextRevision returns the last revision where its digest is the same, otherwise the one after it. The status knows the
// last one, or the slot where the status was lost or is older.
func nextRevision(s v1alpha1.HashRingStatus, digest string, slot Object) int64 {
	last, lastDigest := number(slot.Annotations, v1alpha1.AnnotationRevision), slot.Annotations[v1alpha1.AnnotationDigest]
	if s.Active != nil && s.Active.Revision >= last {
		last, lastDigest = s.Active.Revision, s.Active.Digest
	}
	if last > 0 && lastDigest == digest {
		return last
	}
	return last + 1
}

// lastGoodIntact compares what is there with what the status says was published.
func lastGoodIntact(s v1alpha1.HashRingStatus, seen Observation) bool {
	return s.Active != nil && s.Routing != nil &&
		seen.SlotA.SnapshotDigest == s.Active.Digest &&
		seen.Routing.Holder == Ours &&
		number(seen.Routing.Annotations, v1alpha1.AnnotationGeneration) == s.Routing.Generation &&
		seen.Routing.ContentDigest == seen.Routing.Annotations[v1alpha1.AnnotationContentDigest]
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
