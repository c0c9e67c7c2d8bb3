// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Catalog lists what is published in a cluster. It holds no time that changes by itself.
type Catalog struct {
	// Rings are those of all HashRings, in the order of namespace and name.
	Rings []Ring `json:"rings"`
	// Tombstones are what is left of HashRings that are gone, in the same order.
	Tombstones []Tombstone `json:"tombstones"`
	// WeightPolicies are all WeightPolicies, WeightTombstones what is left of those that are gone, in the same order. They are absent where
	// there are none, as in every catalog from before there were any.
	WeightPolicies   []WeightPolicy    `json:"weightPolicies,omitempty"`
	WeightTombstones []WeightTombstone `json:"weightTombstones,omitempty"`
}

// Ring is what is published for a HashRing.
type Ring struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Digest and Revision are those of the published ring, and so are Points, Bytes and Algorithm; absent where there is none.
	Digest    string `json:"digest,omitempty"`
	Revision  int64  `json:"revision,omitempty"`
	Points    int64  `json:"points,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	Algorithm string `json:"algorithm,omitempty"`
	// State is the reason of condition Ready; absent before the first status.
	State string `json:"state,omitempty"`
}

// Tombstone is what is left of a HashRing that is gone.
type Tombstone struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	// Digest and Revision are those of the ring that answered last; absent where it is not left.
	Digest   string `json:"digest,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	// Until is when it is deleted, in the form of RFC 3339.
	Until string `json:"until"`
}

// Part is a published ConfigMap.
type Part struct {
	Namespace, Name     string
	Labels, Annotations map[string]string
	// Routing is the file in it where that is routing.json, otherwise "".
	Routing string
}

// Of returns the catalog of the HashRings of a cluster and of the ConfigMaps that are published there. It keeps nothing of them.
func Of(rings []v1alpha1.HashRing, parts []Part) Catalog {
	c := Catalog{Rings: []Ring{}, Tombstones: []Tombstone{}}
	present := map[[2]string]bool{}
	for i := range rings {
		present[[2]string{rings[i].Namespace, rings[i].Name}] = true
		c.Rings = append(c.Rings, describe(&rings[i]))
	}
	c.Tombstones = tombstones(parts, present)
	slices.SortFunc(c.Rings, func(a, b Ring) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return c
}

func describe(r *v1alpha1.HashRing) Ring {
	ring := Ring{Namespace: r.Namespace, Name: r.Name, UID: string(r.UID)}
	if a := r.Status.Active; a != nil {
		ring.Digest, ring.Revision, ring.Algorithm = a.Digest, a.Revision, string(a.Algorithm.Version)
	}
	if s := r.Status.Snapshot; s != nil {
		ring.Points, ring.Bytes = s.Points, s.Bytes
	}
	if ready := meta.FindStatusCondition(r.Status.Conditions, string(v1alpha1.ConditionReady)); ready != nil {
		ring.State = ready.Reason
	}
	return ring
}

// tombstones returns those of all rings that are not present: by ring the latest mark, as that is what counts.
func tombstones(parts []Part, present map[[2]string]bool) []Tombstone {
	marks := map[[2]string]Tombstone{}
	for _, p := range parts {
		ring := [2]string{p.Namespace, p.Labels[v1alpha1.LabelRing]}
		until, err := time.Parse(time.RFC3339, p.Annotations[v1alpha1.AnnotationTombstoneUntil])
		if err != nil || ring[1] == "" || present[ring] {
			continue
		}
		mark := Tombstone{
			Namespace: ring[0], Name: ring[1], UID: p.Annotations[v1alpha1.AnnotationRingUID], Until: until.UTC().Format(time.RFC3339),
		}
		if before, ok := marks[ring]; !ok || before.Until < mark.Until || before.Until == mark.Until && before.UID < mark.UID {
			marks[ring] = mark
		}
	}
	slots := slotsOf(parts, marks)
	for _, p := range parts {
		ring := [2]string{p.Namespace, p.Labels[v1alpha1.LabelRing]}
		if mark, ok := marks[ring]; ok && p.Name == ring[1]+"-"+string(cmp.Or(slots[ring], routing.SlotA)) {
			mark.Digest = p.Annotations[v1alpha1.AnnotationDigest]
			mark.Revision, _ = strconv.ParseInt(p.Annotations[v1alpha1.AnnotationRevision], 10, 64) // 0 where it says nothing.
			marks[ring] = mark
		}
	}
	return sortedTombstones(marks)
}

// slotsOf returns the slots of the rings that answered last, as far as their routing files are left.
func slotsOf(parts []Part, marks map[[2]string]Tombstone) map[[2]string]routing.Slot {
	slots := map[[2]string]routing.Slot{}
	for _, p := range parts {
		ring := [2]string{p.Namespace, p.Labels[v1alpha1.LabelRing]}
		if _, marked := marks[ring]; !marked || p.Routing == "" {
			continue
		}
		if file, err := routing.Parse([]byte(p.Routing)); err == nil {
			slots[ring] = file.Stable.Slot
		}
	}
	return slots
}

func sortedTombstones(marks map[[2]string]Tombstone) []Tombstone {
	list := make([]Tombstone, 0, len(marks))
	for _, mark := range marks {
		list = append(list, mark)
	}
	slices.SortFunc(list, func(a, b Tombstone) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}
