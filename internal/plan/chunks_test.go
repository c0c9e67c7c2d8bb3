// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/routingtest"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// large is a spec whose points take two chunks.
func large(chunks int32, encoding v1alpha1.Encoding) v1alpha1.HashRingSpec {
	s := spec(2048)
	s.Publication.Chunks, s.Publication.Encoding = chunks, encoding
	return s
}

func TestChunks(t *testing.T) {
	c := newCluster(t, large(3, v1alpha1.EncodingAuto))
	d := c.step()
	want := []string{"edge-b", "edge-b-1", "edge-b-2", "edge-a", "edge-a-1", "edge-a-2", "edge-routing"}
	if diff := cmp.Diff(want, names(d.Writes)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	files := d.Publication.Files()
	whole := slices.Concat(files["ring-a.snap"], files["ring-a.snap.1"], files["ring-a.snap.2"])
	if !bytes.Equal(whole, d.Desired.Ring.Snapshot()) {
		t.Error("the files one behind the other are not the snapshot")
	}
	for name, size := range map[string]int{"ring-a.snap": plan.ChunkBytes, "ring-a.snap.2": 0, "ring-b.snap": 8, "ring-b.snap.1": 0} {
		if content, ok := files[name]; !ok || len(content) != size {
			t.Errorf("%s: %v, %d bytes, want %d", name, ok, len(content), size)
		}
	}
	file, err := routing.Parse(files[routing.FileName])
	if err != nil || file.Stable.Chunks != 2 || file.Stable.Digest != ring.Digest(whole) {
		t.Errorf("routing.json: %+v, %v", file.Stable, err)
	}
	for _, cm := range d.Publication.ConfigMaps {
		used := cm.Name == "edge-a" || cm.Name == "edge-a-1"
		if got := cm.Annotations[v1alpha1.AnnotationDigest]; (got == file.Stable.Digest) != used || (got == "") == used {
			t.Errorf("%s has the digest %q", cm.Name, got)
		}
	}
	if s := c.ring.Status.Snapshot; s.Chunks != 2 || s.Encoding != v1alpha1.EncodingPoints || s.BudgetUsed != "39%" {
		t.Errorf("status %+v", s)
	}
	if again := c.step(); len(again.Writes)+len(again.Deletes) != 0 {
		t.Errorf("a second step writes %v, deletes %v", names(again.Writes), again.Deletes)
	}
}

// TestOneChunkIsAsItWas: what is published for a ring of one chunk has the bytes that it had before there were chunks.
func TestOneChunkIsAsItWas(t *testing.T) {
	s := spec(3)
	d, err := plan.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	s.Publication.Chunks, s.Publication.Encoding = 1, v1alpha1.EncodingAuto
	same, err := plan.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, desired := range []*plan.Desired{d, same} {
		p, err := plan.Render(plan.Ref{Namespace: "cdn", Name: "edge"}, desired, plan.Numbers{Revision: 1, Generation: 1})
		if err != nil {
			t.Fatal(err)
		}
		want := routingtest.Reseal(`{"apiVersion":"ringwright.dev/v1alpha1","ring":"cdn/edge","generation":1,"stable":{"slot":"a","digest":"` +
			desired.Ring.Digest() + `","version":"V2"},"checksum":"00000000"}` + "\n")
		if diff := cmp.Diff(want, string(p.Files()[routing.FileName])); diff != "" || len(p.ConfigMaps) != 3 {
			t.Errorf("%d ConfigMaps, routing.json (-want +got):\n%s", len(p.ConfigMaps), diff)
		}
	}
}

// TestStatusBeforeChunks: the status of an operator that knew no chunks is that of a ring in one.
func TestStatusBeforeChunks(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.ring.Status.Snapshot.Chunks, c.ring.Status.Snapshot.Encoding, c.ring.Status.Snapshot.BudgetUsed = 0, "", ""
	if d := c.step(); !d.LastGoodIntact || len(d.Writes) != 0 || c.ring.Status.Snapshot.Chunks != 1 {
		t.Errorf("intact %v, writes %v, status %+v", d.LastGoodIntact, names(d.Writes), c.ring.Status.Snapshot)
	}
}

// TestMaxChunks: the API and the files have the same limit.
func TestMaxChunks(t *testing.T) {
	if v1alpha1.MaxChunks != routing.MaxChunks {
		t.Errorf("%d and %d", v1alpha1.MaxChunks, routing.MaxChunks)
	}
}

func TestEncoding(t *testing.T) {
	small := spec(3)
	for name, row := range map[string]struct {
		spec v1alpha1.HashRingSpec
		want v1alpha1.Encoding
	}{
		"Auto, where the points fit":       {small, v1alpha1.EncodingPoints},
		"Auto, where they fit into chunks": {large(2, v1alpha1.EncodingAuto), v1alpha1.EncodingPoints},
		"Auto, where they do not fit":      {large(1, v1alpha1.EncodingAuto), v1alpha1.EncodingRecipe},
		"Points in chunks":                 {large(2, v1alpha1.EncodingPoints), v1alpha1.EncodingPoints},
		"Recipe, where the points fit":     {large(2, v1alpha1.EncodingRecipe), v1alpha1.EncodingRecipe},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := plan.Build(row.spec)
			if err != nil {
				t.Fatal(err)
			}
			points, err := ring.Build(open(t, d).Config())
			if err != nil {
				t.Fatal(err)
			}
			want := points.Snapshot()
			if row.want == v1alpha1.EncodingRecipe {
				want = points.Recipe()
			}
			if d.Ring.Encoding() != row.want || !bytes.Equal(d.Ring.Snapshot(), want) {
				t.Errorf("encoding %s, %d bytes, want %s, %d bytes", d.Ring.Encoding(), len(d.Ring.Snapshot()), row.want, len(want))
			}
			if d.Ring.Stats() != points.Stats() || d.Ring.PointCount() != points.PointCount() {
				t.Errorf("%d points, %+v", d.Ring.PointCount(), d.Ring.Stats())
			}
		})
	}
}

// TestMoreAndFewerChunks: readers are told nothing, so nothing waits; what is given up goes when all else is there.
func TestMoreAndFewerChunks(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	active := c.ring.Status.Active
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Publication.Chunks = 3 })
	d := c.step()
	if diff := cmp.Diff([]string{"edge-b-1", "edge-b-2", "edge-a-1", "edge-a-2"}, names(d.Writes)); diff != "" || d.Wait != 0 || d.Restores {
		t.Errorf("wait %v, restores %v, writes (-want +got):\n%s", d.Wait, d.Restores, diff)
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Publication.Chunks = 2 })
	if d := c.step(); len(d.Writes) != 0 || !slices.Equal(d.Deletes, []string{"edge-b-2", "edge-a-2"}) {
		t.Errorf("writes %v, deletes %v", names(d.Writes), d.Deletes)
	}
	if diff := cmp.Diff(active, c.ring.Status.Active); diff != "" {
		t.Errorf("the active ring changed:\n%s", diff)
	}
	c.wantNumbers(1, 1)
}

// TestChunksInUseAreGivenUpLast: until routing.json is seen not to name them any more, they stay.
func TestChunksInUseAreGivenUpLast(t *testing.T) {
	c := newCluster(t, large(2, v1alpha1.EncodingAuto))
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Publication.Chunks = 1 })
	c.now = c.now.Add(time.Second)
	if d := c.step(); d.Wait == 0 || len(d.Writes)+len(d.Deletes) != 0 {
		t.Errorf("within the interval: wait %v, writes %v, deletes %v", d.Wait, names(d.Writes), d.Deletes)
	}
	c.now = c.now.Add(time.Minute)
	if d := c.step(); !slices.Equal(names(d.Writes), []string{"edge-a", "edge-routing"}) || len(d.Deletes) != 0 {
		t.Errorf("writes %v, deletes %v", names(d.Writes), d.Deletes)
	}
	if d := c.step(); len(d.Writes) != 0 || !slices.Equal(d.Deletes, []string{"edge-b-1", "edge-a-1"}) {
		t.Errorf("writes %v, deletes %v", names(d.Writes), d.Deletes)
	}
	if d := c.step(); len(d.Writes)+len(d.Deletes) != 0 {
		t.Errorf("writes %v, deletes %v", names(d.Writes), d.Deletes)
	}
}

// TestForeignChunks: what is not ours is in the way where it is asked for, and left alone where it is not.
func TestForeignChunks(t *testing.T) {
	c := newCluster(t, spec(3))
	*c.object("edge-a-1") = plan.Object{Name: "edge-a-1", Holder: plan.Foreign}
	if d := c.step(); d.Refusal != nil || len(d.Writes) != 3 {
		t.Errorf("refused: %v, writes %v", d.Refusal, names(d.Writes))
	}
	if d := c.step(); len(d.Deletes) != 0 {
		t.Errorf("deletes %v", d.Deletes)
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Publication.Chunks = 2 })
	if d := c.step(); d.Refusal == nil || d.Refusal.Reason != v1alpha1.ReasonNameConflict {
		t.Errorf("refused: %v", d.Refusal)
	}
}

// TestCoalescingMakesNewChunks: pods that mount them cannot start without them. Those that the published ring is in wait.
func TestCoalescingMakesNewChunks(t *testing.T) {
	c := newCluster(t, large(2, v1alpha1.EncodingAuto))
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Publication.Chunks, s.Algorithm.PointsPerWeight = 4, 350 })
	if d := c.step(); d.Wait == 0 || !slices.Equal(names(d.Writes), []string{"edge-b-2", "edge-b-3", "edge-a-2", "edge-a-3"}) {
		t.Errorf("wait %v, writes %v", d.Wait, names(d.Writes))
	}
	c.wantNumbers(1, 1)
	c.now = c.now.Add(time.Minute)
	c.step()
	c.wantNumbers(2, 2)
}

// TestDamagedChunk: a chunk that was edited or lost is no ring worth waiting with, and comes back.
func TestDamagedChunk(t *testing.T) {
	for name, damage := range map[string]func(*plan.Object){
		"edited":            func(o *plan.Object) { o.ContentDigest = "x" },
		"lost":              func(o *plan.Object) { *o = plan.Object{Name: o.Name} },
		"of another moment": func(o *plan.Object) { o.Annotations[v1alpha1.AnnotationDigest] = "sha256:0" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, large(2, v1alpha1.EncodingAuto))
			c.step()
			damage(c.object("edge-a-1"))
			d := c.step()
			if d.LastGoodIntact || !d.Restores || !slices.Equal(names(d.Writes), []string{"edge-a-1"}) {
				t.Errorf("intact %v, restores %v, writes %v", d.LastGoodIntact, d.Restores, names(d.Writes))
			}
			c.wantNumbers(1, 1)
			damage(c.object("edge-a-1"))
			c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
			if d := c.step(); d.Wait != 0 {
				t.Errorf("waits %v with a damaged ring", d.Wait)
			}
		})
	}
}

// TestCrashBetweenChunks stops behind each write of a chunked publication, changes its mind, and goes on.
func TestCrashBetweenChunks(t *testing.T) {
	for written := range 4 {
		for name, next := range map[string]v1alpha1.HashRingSpec{"goes on": large(2, v1alpha1.EncodingAuto), "changes": large(2, v1alpha1.EncodingRecipe)} {
			c := newCluster(t, spec(3))
			c.ring.Spec.Publication.Chunks = 2
			c.step()
			c.now = c.now.Add(time.Minute)
			c.edit(func(s *v1alpha1.HashRingSpec) { *s = large(2, v1alpha1.EncodingAuto) })
			writes := plan.Decide(c.ring, rings, c.seen, c.now).Writes
			if len(writes) != 3 {
				t.Fatalf("writes %v", names(writes))
			}
			for _, cm := range writes[:min(written, 3)] {
				c.write(cm)
			}
			c.edit(func(s *v1alpha1.HashRingSpec) { *s = next })
			c.step()
			if d := c.step(); len(d.Writes) != 0 {
				t.Errorf("%s after %d writes: still writes %v", name, written, names(d.Writes))
			}
			if got := c.ring.Status.Active.Revision; got < 2 || got > 3 {
				t.Errorf("%s after %d writes: revision %d", name, written, got)
			}
			if got := c.ring.Status.Active.Digest; name == "goes on" && (c.ring.Status.Active.Revision != 2 || got != c.object("edge-a").Annotations[v1alpha1.AnnotationDigest]) {
				t.Errorf("%s after %d writes: revision %d, %s", name, written, c.ring.Status.Active.Revision, got)
			}
		}
	}
}

// TestBudgetUsed rounds up, so that 100% is what just fits.
func TestBudgetUsed(t *testing.T) {
	s := spec(1)
	s.Backends[0].Weight, s.Publication.Chunks = ptr.To(int32(4000)), 16
	c := newCluster(t, s)
	c.step()
	// It takes 7.85 %.
	if used := c.ring.Status.Snapshot; used.Bytes/1000 != 1316 || used.BudgetUsed != "8%" {
		t.Errorf("%s of %d bytes", used.BudgetUsed, used.Bytes)
	}
}

// TestProposedChunksFit: the number of chunks that a message proposes is enough, and one less is not.
func TestProposedChunksFit(t *testing.T) {
	for _, pointsPerWeight := range []int32{160, 320} {
		s := large(1, v1alpha1.EncodingPoints)
		s.Algorithm.PointsPerWeight = pointsPerWeight
		proposed := proposedNumber(t, s, "spec.publication.chunks ")
		s.Publication.Chunks = proposed
		if _, err := plan.Build(s); err != nil {
			t.Errorf("%d points: the proposed %d chunks: %v", pointsPerWeight, proposed, err)
		}
		s.Publication.Chunks--
		if _, err := plan.Build(s); err == nil {
			t.Errorf("%d points: one chunk less than the proposed %d is enough", pointsPerWeight, proposed)
		}
	}
}

// TestRecordsFit: what a record cannot hold is refused, however many chunks there are.
func TestRecordsFit(t *testing.T) {
	s := spec(4096)
	s.Identity, s.Publication.Chunks = v1alpha1.IdentityNGINX, v1alpha1.MaxChunks
	for i := range s.Backends {
		s.Backends[i].Address = strings.Repeat("cache-", 40) + strconv.Itoa(i) + ".example"
		s.Backends[i].Port = ptr.To[int32](80)
	}
	s.Algorithm.PointsPerWeight = 1
	_, err := plan.Build(s)
	want := "its record at most 1048576: fewer backends, shorter names or fewer views would fit"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	for i := range s.Backends {
		s.Backends[i].Address = strings.Repeat("cache-", 38) + strconv.Itoa(i) + ".example"
	}
	if _, err := plan.Build(s); err != nil {
		t.Error(err)
	}
}
