// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
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
	// Declared are the sorted identities of the backends that spec itself had, where there were sources beside them.
	Declared []string
}

// Published is a ring that was published, as it was found again.
type Published struct {
	// Recipe is the ring without its points.
	Recipe []byte
	// Digest is that of the snapshot that was published.
	Digest string
	// Declared is as in [Record].
	Declared []string
}

// encoding returns how the snapshot was written.
func (p *Published) encoding() v1alpha1.Encoding {
	if ring.Digest(p.Recipe) == p.Digest {
		return v1alpha1.EncodingRecipe
	}
	return v1alpha1.EncodingPoints
}

// MaxRecipeBytes is how large a recipe can be: a record holds it in base64, and etcd takes objects of 1.5 MiB.
const MaxRecipeBytes = 1 << 20

// MaxRecordBytes is how much the data of a record can have: what etcd takes, but for 64 KiB that are left to metadata and frame.
const MaxRecordBytes = 3<<19 - 64<<10

// checkRecord refuses a ring whose record would be too large.
func checkRecord(recipe []byte, declared []string) error {
	const frame = 256 // Names of fields, and a digest.
	list, err := json.Marshal(declared)
	if err != nil {
		return err
	}
	if size := base64.StdEncoding.EncodedLen(len(recipe)) + len(list) + frame; size > MaxRecordBytes {
		return refusef(v1alpha1.ReasonSnapshotTooLarge,
			"the record of the ring would have %d bytes, of which %d list the identities of spec.backends beside sources, the limit is %d: fewer backends or shorter names would fit",
			size, len(list), MaxRecordBytes)
	}
	return nil
}

// Recorded is a ControllerRevision as it is in the cluster, without its recipe. ContentDigest of the object is what
// [RecordDigest] returns, FileDigest the digest of the published snapshot.
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
	return o.Holder == Ours && o.Revision == record.Revision && o.FileDigest == record.Digest && o.ContentDigest == RecordDigest(record.Recipe, record.Declared)
}

// RecordDigest returns a digest of what a record keeps beside the digest of the snapshot: that of the recipe where nothing is
// declared beside sources.
func RecordDigest(recipe []byte, declared []string) string {
	digest := ring.Digest(recipe)
	if len(declared) == 0 {
		return digest
	}
	return ring.Digest([]byte(digest + "\n" + strings.Join(declared, "\n"))) // No identity has a line feed.
}

// RecordName returns the name of the ControllerRevision of a revision.
func RecordName(ringName string, revision int64) string {
	return fmt.Sprintf("%s-%d", ringName, revision)
}

// newRecord returns the record of a ring that is to be published.
func newRecord(ringName string, revision int64, r *Ring, declared []string) Record {
	return Record{
		Name: RecordName(ringName, revision), Revision: revision, Digest: r.Digest(), Recipe: r.Recipe(), Declared: declared,
	}
}

// DefaultHistoryLimit is spec.historyLimit where spec does not set it; the schema has the same default.
const DefaultHistoryLimit = 10

func historyLimit(spec v1alpha1.HashRingSpec) int {
	if spec.HistoryLimit == nil {
		return DefaultHistoryLimit
	}
	return int(*spec.HistoryLimit)
}

// PinnedRecord returns the record of spec.pinnedRevision; nil where there is none.
func PinnedRecord(spec v1alpha1.HashRingSpec, seen Observation) *Recorded {
	if spec.PinnedRevision == nil {
		return nil
	}
	for _, o := range seen.History {
		if o.Holder == Ours && o.Revision == *spec.PinnedRevision {
			return &o
		}
	}
	return nil
}

// Source is where a ring that was published can be found again.
type Source struct {
	// Record is nil for Slot, which is "" for a record.
	Record *Recorded
	Slot   routing.Slot
	// Digest is that of the snapshot that was published.
	Digest string
}

// Sources returns where the ring that was published last can be found, the best first: its record, its slot, and behind them
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
	slot := lastSlot(s, seen)
	if o := seen.slot(slot); o.intact() && o.Annotations[v1alpha1.AnnotationDigest] == digest {
		same = append(same, Source{Slot: slot, Digest: digest})
	}
	return append(same, before...)
}

// records returns the records of what is to be published that are not in the cluster as they shall be.
func records(r *v1alpha1.HashRing, p *Publication, d *Desired, seen Observation) ([]Record, error) {
	wanted := []Record{newRecord(r.Name, p.Revision, d.Ring, d.Declared)}
	if c := d.Candidate; c != nil {
		wanted = append(wanted, newRecord(r.Name, c.Revision, c.Ring, c.Declared))
	}
	var missing []Record
	for _, want := range wanted {
		found := false
		for _, o := range seen.History {
			if o.Name == want.Name && o.Holder == Foreign {
				return nil, Taken("ControllerRevision", r.Namespace, o.Name)
			}
			found = found || o.Name == want.Name && o.matches(want)
		}
		if !found {
			missing = append(missing, want)
		}
	}
	return missing, nil
}

// outdated returns the records to delete once revision is published: all but those of the newest revisions, as many as
// spec.historyLimit says beside the published one, the one that was published before, which a restart may need, the pinned one, and
// that of a candidate.
//
// Those of a higher number were never published, or caches are behind and one is published already: they go only where the slot is
// written, which fails in the latter case.
func outdated(r *v1alpha1.HashRing, revision int64, seen Observation, writesSlot bool) []Recorded {
	before, _ := lastPublished(r.Status, seen)
	room, wanted := historyLimit(r.Spec), Wanted(r, seen)
	var list []Recorded
	for _, o := range slices.Backward(seen.History) {
		switch {
		case o.Holder != Ours || o.Revision == revision || o.Revision == before:
		case slices.Contains(wanted, o.FileDigest):
		case r.Spec.PinnedRevision != nil && o.Revision == *r.Spec.PinnedRevision:
		case room > 0 && o.Revision < min(before, revision):
		case o.Revision > revision && !writesSlot:
		default: // None between the last one and this was published.
			list = append(list, o)
			continue
		}
		if o.Holder == Ours && o.Revision < revision {
			room--
		}
	}
	slices.Reverse(list)
	return list
}

func writesSlot(r *v1alpha1.HashRing, writes []ConfigMap, slot routing.Slot) bool {
	return slices.ContainsFunc(writes, func(cm ConfigMap) bool { return cm.Name == SlotName(r.Name, slot) })
}
