// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// Record is what a ControllerRevision shall hold: from what the ring of a revision is built again, byte for byte. It is
// written before the ring is published, so that no ring is ever published whose trims are not kept elsewhere.
type Record struct {
	Name string
	// Revision is the number of the revision.
	Revision int64
	// Digest is that of the published snapshot.
	Digest string
	// Recipe is the ring without its points.
	Recipe []byte
}

// MaxRecipeBytes is how large a recipe can be: a record holds it in base64, and etcd takes objects of 1.5 MiB.
const MaxRecipeBytes = 1 << 20

// Recorded is a ControllerRevision as it is in the cluster, without its recipe. ContentDigest of the object is the digest of
// the recipe, FileDigest that of the published snapshot.
type Recorded struct {
	Object
	Revision int64
	UID      types.UID
}

// matches says that nothing has to be written for o to be record.
func (o Recorded) matches(record Record) bool { return o.MetadataIntact && o.Holds(record) }

// Holds says that o is ours and keeps what record shall keep. That cannot be changed in place: an API server takes no
// other data for a ControllerRevision.
func (o Recorded) Holds(record Record) bool {
	return o.Holder == Ours && o.Revision == record.Revision && o.FileDigest == record.Digest && o.ContentDigest == ring.Digest(record.Recipe)
}

// RecordName returns the name of the ControllerRevision of a revision.
func RecordName(ringName string, revision int64) string {
	return fmt.Sprintf("%s-%d", ringName, revision)
}

// NewRecord returns the record of a published ring.
func NewRecord(ringName string, revision int64, r *Ring) Record {
	return Record{Name: RecordName(ringName, revision), Revision: revision, Digest: r.Digest(), Recipe: r.Recipe()}
}

// Source is where a ring that was published can be found again.
type Source struct {
	// Record is nil for slot a.
	Record *Recorded
	// Digest is that of the snapshot that was published.
	Digest string
}

// Sources returns where the ring that was published last can be found, the best first: its record, slot a, and behind them
// the records of the rings before, the newest first, because from the ring before the same spec gives the same ring again.
func Sources(s v1alpha1.HashRingStatus, seen Observation) []Source {
	revision, digest := lastPublished(s, seen)
	if digest == "" {
		return nil
	}
	var same, before []Source
	for _, o := range slices.Backward(seen.History) {
		source := Source{Record: &o, Digest: o.FileDigest}
		switch {
		case o.Holder != Ours || o.Revision > revision: // The latter was never published.
		case o.FileDigest == digest:
			same = append(same, source)
		default:
			before = append(before, source)
		}
	}
	if seen.SlotA.intact() && seen.SlotA.Annotations[v1alpha1.AnnotationDigest] == digest {
		same = append(same, Source{Digest: digest})
	}
	return append(same, before...)
}

// record returns the record of p where it is not in the cluster as it shall be, otherwise nil.
func record(r *v1alpha1.HashRing, p *Publication, d *Desired, seen Observation) (*Record, error) {
	want := NewRecord(r.Name, p.Revision, d.Ring)
	for _, o := range seen.History {
		if o.Name != want.Name {
			continue
		}
		if o.Holder == Foreign {
			return nil, Taken("ControllerRevision", r.Namespace, o.Name)
		}
		if o.matches(want) {
			return nil, nil
		}
	}
	return &want, nil
}

// outdated returns the records to delete once revision is published: all but that and the one published before.
func outdated(s v1alpha1.HashRingStatus, revision int64, seen Observation) []Recorded {
	before, _ := lastPublished(s, seen)
	if before == revision {
		before = 0
		for _, o := range seen.History {
			if o.Holder == Ours && o.Revision < revision {
				before = max(before, o.Revision)
			}
		}
	}
	var list []Recorded
	for _, o := range seen.History {
		if o.Holder == Ours && o.Revision != revision && o.Revision != before {
			list = append(list, o)
		}
	}
	return list
}
