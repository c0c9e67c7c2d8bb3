// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// Holder says whose a ConfigMap of a published name is.
type Holder uint8

const (
	// Nobody says that there is no ConfigMap of that name.
	Nobody Holder = iota
	// Ours says that it was published for this HashRing, or for one of its name that is gone.
	Ours
	// Foreign says that somebody else made it.
	Foreign
)

// Object is a published ConfigMap as it is in the cluster, without its payload.
type Object struct {
	Name   string
	Holder Holder
	// ContentDigest is the digest of the payload that is there, not what an annotation says of it.
	ContentDigest string
	// FileDigest is the digest of the file that is there, of routing.json or of the first chunk of a slot; "" for the others.
	FileDigest  string
	Annotations map[string]string
	// Text is the file where that is routing.json, otherwise "".
	Text string
	// MetadataIntact says that the metadata that says whose the object is, is as it shall be.
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

// intact says that the payload is the one that was published with the annotations.
func (o Object) intact() bool {
	return o.ContentDigest == o.Annotations[v1alpha1.AnnotationContentDigest]
}

// Observation is what the cluster holds of one ring.
type Observation struct {
	SlotA, SlotB, Routing Object
	// Chunks are the further ConfigMaps of both slots: those that spec asks for, and those of an earlier spec that are
	// still there.
	Chunks []Object
	// History are the records that carry our labels, in ascending order of their revisions.
	History []Recorded
	// Published is the ring that was published last, as [Sources] finds it; nil where there is none.
	Published *Published
	// Kept are the rings of the digests in [Wanted], as [KeptSources] finds them; one that is not kept is not in it.
	Kept map[string]*Published
	// Pinned is the ring of [PinnedRecord]; nil where there is none.
	Pinned *Published
	// LeaderEpoch is that of this operator; 0 where nobody elects a leader.
	LeaderEpoch int64
	// Sources are what was seen of spec.backendsFrom, in the same order.
	Sources []BackendSource
	// WeightSets are those of the HashRing, in any order: of their endpoints IDs and weights.
	WeightSets []v1alpha1.WeightSet
	// Consumers are what is known of spec.consumers; nil where not all of them have been asked yet.
	Consumers *Consumers
	// PublishedAt is when this process published last; the zero time where it has not. The status can be behind.
	PublishedAt time.Time
}

func (o Observation) all() []Object {
	return append([]Object{o.SlotA, o.SlotB, o.Routing}, o.Chunks...)
}

func (o Observation) find(name string) Object {
	for _, object := range o.all() {
		if object.Name == name {
			return object
		}
	}
	return Object{Name: name}
}
