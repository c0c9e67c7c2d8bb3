// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

const minute = time.Minute

// writeRecord puts a record into the cluster, as what is seen of it.
func (c *cluster) writeRecord(record plan.Record) {
	c.recipes[record.Name], c.declared[record.Name] = record.Recipe, record.Declared
	c.seen.History = slices.DeleteFunc(c.seen.History, func(o plan.Recorded) bool { return o.Name == record.Name })
	c.seen.History = append(c.seen.History, plan.Recorded{Revision: record.Revision, Object: plan.Object{
		Name: record.Name, Holder: plan.Ours, MetadataIntact: true, FileDigest: record.Digest,
		ContentDigest: plan.RecordDigest(record.Recipe, record.Declared),
	}})
	slices.SortFunc(c.seen.History, func(a, b plan.Recorded) int { return int(a.Revision - b.Revision) })
}

func (c *cluster) deleteRecord(name string) {
	delete(c.recipes, name)
	c.seen.History = slices.DeleteFunc(c.seen.History, func(o plan.Recorded) bool { return o.Name == name })
}

// found finds the ring that was published last, as the operator does.
func (c *cluster) found() *plan.Published {
	return c.first(plan.Sources(c.ring.Status, c.seen))
}

// first returns the ring in the first source that has it.
func (c *cluster) first(sources []plan.Source) *plan.Published {
	for _, source := range sources {
		if source.Record != nil {
			return &plan.Published{Recipe: c.recipes[source.Record.Name], Digest: source.Digest, Declared: c.declared[source.Record.Name]}
		}
		snapshot := map[routing.Slot][]byte{routing.SlotA: c.slot, routing.SlotB: c.other}[source.Slot]
		if r, err := ring.Open(snapshot); err == nil { // Else it is the first of several chunks.
			return &plan.Published{Recipe: r.Recipe(), Digest: source.Digest}
		}
	}
	return nil
}

// look brings what depends on the other things that are seen up to date.
func (c *cluster) look() {
	c.seen.Published, c.seen.Pinned = c.found(), nil
	c.seen.Kept = map[string]*plan.Published{}
	for _, digest := range plan.Wanted(c.ring, c.seen) {
		if kept := c.first(plan.KeptSources(digest, c.seen)); kept != nil {
			c.seen.Kept[digest] = kept
		}
	}
	if record := plan.PinnedRecord(c.ring.Spec, c.seen); record != nil {
		c.seen.Pinned = &plan.Published{Recipe: c.recipes[record.Name], Digest: record.FileDigest, Declared: c.declared[record.Name]}
	}
}

func (c *cluster) records() []string {
	return slices.Sorted(maps.Keys(c.recipes))
}

func (c *cluster) wantRecords(want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.records()); diff != "" {
		c.t.Errorf("records (-want +got):\n%s", diff)
	}
}

// published returns the ring in slot a.
func (c *cluster) published() *ring.Ring {
	c.t.Helper()
	r, err := ring.Open(c.slot)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// moved returns the fraction of the keys that change owner.
func moved(t *testing.T, from, to *ring.Ring) float64 {
	t.Helper()
	a, err := from.View()
	if err != nil {
		t.Fatal(err)
	}
	b, err := to.View()
	if err != nil {
		t.Fatal(err)
	}
	return float64(ring.Compare(a, b).Total) / ring.KeySpace
}

// TestSources: what is published comes before what was, and what was never published not at all.
func TestSources(t *testing.T) {
	recorded := func(revision int64, digest string) plan.Recorded {
		return plan.Recorded{Revision: revision, Object: plan.Object{Name: fmt.Sprint("r", revision), Holder: plan.Ours, FileDigest: digest}}
	}
	foreign := recorded(3, "three")
	foreign.Holder = plan.Foreign
	status := v1alpha1.HashRingStatus{Active: &v1alpha1.ActiveRing{Revision: 3, Digest: "three"}}
	for name, row := range map[string]struct {
		status  v1alpha1.HashRingStatus
		slot    string
		history []plan.Recorded
		want    string
	}{
		"nothing":                 {v1alpha1.HashRingStatus{}, "", nil, ""},
		"all there":               {status, "three", []plan.Recorded{recorded(2, "two"), recorded(3, "three")}, "r3 slot r2"},
		"a record never used":     {status, "three", []plan.Recorded{recorded(3, "three"), recorded(4, "four")}, "r3 slot"},
		"another slot":            {status, "x", []plan.Recorded{recorded(2, "two"), recorded(3, "three")}, "r3 r2"},
		"no record":               {status, "three", []plan.Recorded{recorded(1, "one"), recorded(2, "two")}, "slot r2 r1"},
		"a record that was faked": {status, "three", []plan.Recorded{recorded(2, "two"), recorded(3, "x")}, "slot r3 r2"},
		"somebody else's record":  {status, "three", []plan.Recorded{recorded(2, "two"), foreign}, "slot r2"},
		"an older ring like it":   {status, "x", []plan.Recorded{recorded(1, "three"), recorded(2, "two")}, "r1 r2"},
		"records alone":           {v1alpha1.HashRingStatus{}, "", []plan.Recorded{recorded(2, "two"), recorded(3, "three")}, "r3 r2"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := plan.Observation{SlotA: plan.Object{Annotations: map[string]string{v1alpha1.AnnotationDigest: row.slot}}, History: row.history}
			var got []string
			for _, source := range plan.Sources(row.status, seen) {
				if source.Record == nil {
					got = append(got, "slot")
					continue
				}
				got = append(got, source.Record.Name)
			}
			if strings.Join(got, " ") != row.want {
				t.Errorf("%v, want %s", got, row.want)
			}
		})
	}
}

// TestSmallChangesMoveLittle: trims stick, so one backend more moves about what it must, and not what trimming anew would.
func TestSmallChangesMoveLittle(t *testing.T) {
	c := newCluster(t, trimmed(100, 2))
	c.step()
	for i := range 10 {
		before := c.published()
		c.now = c.now.Add(minute)
		c.edit(func(s *v1alpha1.HashRingSpec) { *s = trimmed(101+i, 2) })
		c.step()
		share := 1 / float64(101+i)
		if got := moved(t, before, c.published()); got > 3*share || got < share/2 {
			t.Errorf("backend %d moves %.2f %% of the keys, its share is %.2f %%", 101+i, got*100, share*100)
		}
		if fresh := build(t, c.ring.Spec); bytes.Equal(fresh.Snapshot(), c.slot) {
			t.Error("what was published does not depend on what was before: the test shows nothing")
		}
	}
}

func TestRecordsBeforeItPublishes(t *testing.T) {
	for _, s := range []v1alpha1.HashRingSpec{spec(3), trimmed(20, 1)} {
		c := newCluster(t, s)
		d := c.step()
		if len(d.Records) == 0 || d.Records[0].Name != "edge-1" || d.Records[0].Digest != d.Desired.Ring.Digest() {
			t.Fatalf("record %+v", d.Records)
		}
		r, err := ring.Open(d.Records[0].Recipe)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ring.Build(r.Config())
		if err != nil || !bytes.Equal(again.Snapshot(), c.slot) {
			t.Errorf("the record does not give the published bytes: %v", err)
		}
		if d := c.step(); len(d.Records) != 0 || len(d.Outdated) != 0 {
			t.Errorf("a second step writes %+v and deletes %v", d.Records, d.Outdated)
		}
	}
}

// TestKeepsTwoRecords: that of the published ring and of the one before.
func TestKeepsTwoRecords(t *testing.T) {
	c := newCluster(t, spec(3))
	for i := range 4 {
		c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4 + i) })
		c.step()
		c.now = c.now.Add(minute)
	}
	c.wantRecords("edge-3", "edge-4")
	if d := c.step(); len(d.Outdated) != 0 {
		t.Errorf("deletes %v", d.Outdated)
	}
}

func TestChangeOfVersion(t *testing.T) {
	c := newCluster(t, spec(200))
	c.step()
	v2 := c.published()
	c.now = c.now.Add(minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.Version, s.Algorithm.WeightUnit = v1alpha1.AlgorithmV3, 1 })
	c.step()
	v3 := c.published()
	if got := moved(t, v2, v3); got == 0 || got > 0.05 {
		t.Errorf("V2 to V3 moves %.2f %%, about 3 %% are documented", got*100)
	}
	c.now = c.now.Add(minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.Version = v1alpha1.AlgorithmV2 })
	c.step()
	if !bytes.Equal(c.slot, v2.Snapshot()) {
		t.Error("going back does not give the ring before")
	}
	c.wantNumbers(3, 3)
	c.wantRecords("edge-2", "edge-3")
}

func TestRecordOfSomebodyElse(t *testing.T) {
	c := newCluster(t, spec(3))
	c.seen.History = []plan.Recorded{{Revision: 1, Object: plan.Object{Name: "edge-1", Holder: plan.Foreign}}}
	if d := c.step(); len(d.Writes) != 0 || len(d.Records) != 0 || len(d.Outdated) != 0 {
		t.Errorf("writes %v, %v, deletes %v", names(d.Writes), d.Records, d.Outdated)
	}
	c.wantConditions("Ready=False/NameConflict", "Published=False/NameConflict", "Stalled=True/NameConflict")
	if !strings.Contains(c.message(), "ControllerRevision cdn/edge-1 exists") {
		t.Errorf("message %q", c.message())
	}
}

// TestRecordThatWasReplaced: what holds something else under a published number is replaced.
func TestRecordThatWasReplaced(t *testing.T) {
	for name, damage := range map[string]func(*plan.Recorded){
		"recipe":   func(o *plan.Recorded) { o.ContentDigest = "x" },
		"digest":   func(o *plan.Recorded) { o.FileDigest = "x" },
		"metadata": func(o *plan.Recorded) { o.MetadataIntact = false },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, spec(3))
			c.step()
			damage(&c.seen.History[0])
			if d := c.step(); len(d.Records) == 0 || d.Records[0].Name != "edge-1" || !d.Restores || len(d.Writes) != 0 {
				t.Errorf("record %+v, restores %v, writes %v", d.Records, d.Restores, names(d.Writes))
			}
		})
	}
}

// TestStaleLookDeletesNothing: where the caches of ConfigMaps and HashRings are behind that of records, the record of the ring that
// was published a moment ago stays.
func TestStaleLookDeletesNothing(t *testing.T) {
	c := newCluster(t, named())
	c.see(pods(10))
	c.step()
	status, slot, file := *c.ring.Status.DeepCopy(), c.seen.SlotA, c.seen.Routing
	c.see(pods(11))
	c.after(minute)
	c.wantRecords("edge-1", "edge-2")
	c.ring.Status, c.seen.SlotA, c.seen.Routing = status, slot, file
	c.see(pods(10))
	if d := c.after(time.Millisecond); len(d.Writes) != 0 || len(d.Outdated) != 0 {
		t.Errorf("writes %v, deletes %v", names(d.Writes), d.Outdated)
	}
	c.wantRecords("edge-1", "edge-2")
}

// TestRecordNeverPublished: what a crash left over goes when the slot is written the next time.
func TestRecordNeverPublished(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.writeRecord(plan.Record{Name: "edge-7", Revision: 7, Digest: "sha256:7", Recipe: []byte("x")})
	c.after(minute)
	c.wantRecords("edge-1", "edge-7")
	c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
	c.after(minute)
	c.wantRecords("edge-1", "edge-2")
}

// TestWaitingRecordsNothing: a ring that is not published yet may never be.
func TestWaitingRecordsNothing(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
	if d := c.step(); d.Wait == 0 || len(d.Records) != 0 || len(d.Outdated) != 0 {
		t.Errorf("wait %v, record %+v, deletes %v", d.Wait, d.Records, d.Outdated)
	}
	c.wantRecords("edge-1")
}

func ExampleRecordName() {
	fmt.Println(plan.RecordName("edge-cache", 12))
	// Output: edge-cache-12
}
