// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/ringcache"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// rings keeps what the tests have built: many ask for the same.
var rings = ringcache.New(plan.MaxPoints)

var start = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)

// spec returns a spec as the schema's defaults leave it, with n backends.
func spec(n int) v1alpha1.HashRingSpec {
	s := v1alpha1.HashRingSpec{
		Algorithm:   v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV2, PointsPerWeight: 160},
		Identity:    v1alpha1.IdentityAddress,
		Publication: v1alpha1.Publication{MinInterval: &metav1.Duration{Duration: 5 * time.Second}},
		// What holds a change back has tests of its own.
		ChangePolicy: v1alpha1.ChangeImmediate,
		Membership:   v1alpha1.Membership{MaxRemoved: "100%"},
		HistoryLimit: ptr.To(int32(1)),
	}
	for i := range n {
		s.Backends = append(s.Backends, v1alpha1.Backend{
			Name: fmt.Sprintf("c%d", i), Address: fmt.Sprintf("10.0.%d.%d", i/256, i%256), Port: ptr.To(int32(8080)), Weight: ptr.To(int32(1)),
		})
	}
	return s
}

func hashRing(s v1alpha1.HashRingSpec) *v1alpha1.HashRing {
	return &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "edge", UID: "uid-1", Generation: 1}, Spec: s}
}

// cluster applies decisions as the operator does, without a cluster.
type cluster struct {
	t    *testing.T
	ring *v1alpha1.HashRing
	seen plan.Observation
	now  time.Time
	// slot is what is in slot a, other what is in slot b, recipes what is in the records.
	slot     []byte
	other    []byte
	recipes  map[string][]byte
	declared map[string][]string
}

func newCluster(t *testing.T, s v1alpha1.HashRingSpec) *cluster {
	c := &cluster{t: t, ring: hashRing(s), now: start, recipes: map[string][]byte{}, declared: map[string][]string{}}
	c.seen.SlotA.Name, c.seen.SlotB.Name, c.seen.Routing.Name = "edge-a", "edge-b", "edge-routing"
	return c
}

// step decides, writes and reports once.
func (c *cluster) step() plan.Decision {
	c.look()
	d := plan.Decide(c.ring, rings, c.seen, c.now)
	for _, record := range d.Records {
		c.writeRecord(record)
	}
	for _, cm := range d.Writes {
		c.write(cm)
	}
	c.seen.Chunks = slices.DeleteFunc(c.seen.Chunks, func(o plan.Object) bool { return slices.Contains(d.Deletes, o.Name) })
	for _, record := range d.Outdated {
		c.deleteRecord(record.Name)
	}
	c.ring.Status = c.stored(plan.Status(c.ring, d, nil, c.now))
	return d
}

// stored returns a status as it comes back from an API server, which takes no field that is null.
func (c *cluster) stored(s v1alpha1.HashRingStatus) v1alpha1.HashRingStatus {
	c.t.Helper()
	text, err := json.Marshal(s)
	if err != nil || strings.Contains(string(text), ":null") {
		c.t.Fatalf("the API server would refuse the status %s, %v", text, err)
	}
	var stored v1alpha1.HashRingStatus
	if err := json.Unmarshal(text, &stored); err != nil {
		c.t.Fatal(err)
	}
	return stored
}

func (c *cluster) write(cm plan.ConfigMap) {
	object := plan.Object{
		Name: cm.Name, Holder: plan.Ours, MetadataIntact: true, Annotations: maps.Clone(cm.Annotations),
		ContentDigest: plan.ContentDigest(cm.Data, cm.BinaryData),
	}
	if snapshot, ok := cm.BinaryData[routing.SlotA.FileName()]; ok {
		object.FileDigest = ring.Digest(snapshot)
		c.slot = snapshot
	}
	if snapshot, ok := cm.BinaryData[routing.SlotB.FileName()]; ok {
		object.FileDigest = ring.Digest(snapshot)
		c.other = snapshot
	}
	if file, ok := cm.Data[routing.FileName]; ok {
		object.FileDigest, object.Text = ring.Digest([]byte(file)), file
	}
	*c.object(cm.Name) = object
}

// object returns the place of an object in what is seen, which is made where there is none yet.
func (c *cluster) object(name string) *plan.Object {
	if object := map[string]*plan.Object{"edge-a": &c.seen.SlotA, "edge-b": &c.seen.SlotB, "edge-routing": &c.seen.Routing}[name]; object != nil {
		return object
	}
	for i := range c.seen.Chunks {
		if c.seen.Chunks[i].Name == name {
			return &c.seen.Chunks[i]
		}
	}
	c.seen.Chunks = append(c.seen.Chunks, plan.Object{Name: name})
	return &c.seen.Chunks[len(c.seen.Chunks)-1]
}

func (c *cluster) edit(change func(*v1alpha1.HashRingSpec)) {
	change(&c.ring.Spec)
	c.ring.Generation++
}

// quiet are the conditions that are always there and say that nothing is the matter.
var quiet = []string{
	"BackendsResolved=True/Resolved", "Held=False/NotHeld", "MigrationRequired=False/NoCandidate", "Applied=Unknown/NoConsumersDeclared",
}

// conditions returns the conditions as "Type=Status/Reason", without the quiet ones.
func (c *cluster) conditions() []string {
	var list []string
	for _, condition := range c.ring.Status.Conditions {
		if condition.ObservedGeneration != c.ring.Generation {
			c.t.Errorf("condition %s was observed at generation %d of %d", condition.Type, condition.ObservedGeneration, c.ring.Generation)
		}
		text := fmt.Sprintf("%s=%s/%s", condition.Type, condition.Status, condition.Reason)
		if !slices.Contains(quiet, text) {
			list = append(list, text)
		}
	}
	return list
}

func (c *cluster) wantConditions(want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.conditions()); diff != "" {
		c.t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func (c *cluster) message() string {
	return meta.FindStatusCondition(c.ring.Status.Conditions, string(v1alpha1.ConditionReady)).Message
}

func (c *cluster) wantNumbers(revision, generation int64) {
	c.t.Helper()
	if got := c.ring.Status.Active.Revision; got != revision {
		c.t.Errorf("revision %d, want %d", got, revision)
	}
	if got := c.ring.Status.Routing.Generation; got != generation {
		c.t.Errorf("routing generation %d, want %d", got, generation)
	}
}

func names(list []plan.ConfigMap) []string {
	var names []string
	for _, cm := range list {
		names = append(names, cm.Name)
	}
	return names
}

func open(t *testing.T, d *plan.Desired) *ring.Ring {
	t.Helper()
	r, err := d.Ring.Open()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFirstPublication(t *testing.T) {
	c := newCluster(t, spec(3))
	d := c.step()
	if diff := cmp.Diff([]string{"edge-b", "edge-a", "edge-routing"}, names(d.Writes)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	c.wantNumbers(1, 1)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	want := v1alpha1.HashRingStatus{
		ObservedGeneration: 1,
		Active: &v1alpha1.ActiveRing{
			Revision: 1, Digest: d.Desired.Ring.Digest(), Slot: v1alpha1.SlotA, PublishedAt: metav1.NewMicroTime(start.Truncate(time.Microsecond)),
			Algorithm: v1alpha1.ActiveAlgorithm{Version: v1alpha1.AlgorithmV2, PointsPerWeight: 160},
		},
		Backends: &v1alpha1.BackendCounts{Total: 3, Placed: 3, Reference: 3},
		Snapshot: &v1alpha1.SnapshotSize{
			Points: 480, Bytes: int64(len(d.Desired.Ring.Snapshot())), BytesPerPoint: "4.07", Encoding: v1alpha1.EncodingPoints, Chunks: 1, BudgetUsed: "1%",
		},
		Balance: &v1alpha1.Balance{MaxOverAverage: "1.025", CoefficientOfVariation: "2.19%", Predicted: "6.45%"},
		Routing: &v1alpha1.Routing{Generation: 1, Digest: d.Publication.RoutingDigest},
	}
	got := c.ring.Status
	got.Conditions = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if again := c.step(); len(again.Writes) != 0 {
		t.Errorf("a second step writes %v", names(again.Writes))
	}
}

func TestNewRevision(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.now = c.now.Add(time.Minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
	if d := c.step(); !slices.Equal(names(d.Writes), []string{"edge-a", "edge-routing"}) || d.Restores {
		t.Errorf("writes %v, restores %v", names(d.Writes), d.Restores)
	}
	c.wantNumbers(2, 2)
	c.now = c.now.Add(time.Minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends[0].Name = "renamed" })
	if d := c.step(); len(d.Writes) != 0 {
		t.Errorf("a name that is not hashed changes %v", names(d.Writes))
	}
	c.wantNumbers(2, 2)
	if c.ring.Status.ObservedGeneration != 3 {
		t.Errorf("observed generation %d", c.ring.Status.ObservedGeneration)
	}
}

// TestAddressOfANamedBackend: the address changes a few bytes of the routing file and nothing of the ring.
func TestAddressOfANamedBackend(t *testing.T) {
	s := spec(3)
	s.Identity = v1alpha1.IdentityName
	c := newCluster(t, s)
	d := c.step()
	if got := d.Desired.Addresses["c1"]; got != "10.0.0.1:8080" {
		t.Errorf("address of c1: %q", got)
	}
	c.now = c.now.Add(time.Minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends[1].Address = "2001:DB8::1" })
	if d := c.step(); !slices.Equal(names(d.Writes), []string{"edge-routing"}) || d.Desired.Addresses["c1"] != "[2001:db8::1]:8080" {
		t.Errorf("writes %v with %v", names(d.Writes), d.Desired.Addresses)
	}
	c.wantNumbers(1, 2)
}

func TestCoalescing(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	for i := range 3 {
		c.now = start.Add(time.Duration(i+1) * time.Second)
		c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4 + i) })
		d := c.step()
		if want := start.Truncate(time.Microsecond).Add(5 * time.Second).Sub(c.now); len(d.Writes) != 0 || d.Wait != want {
			t.Fatalf("after %d s: writes %v, wait %v, want %v", i+1, names(d.Writes), d.Wait, want)
		}
		c.wantConditions("Ready=True/Coalescing", "Published=False/Coalescing", "Reconciling=True/Coalescing")
		c.wantNumbers(1, 1)
	}
	c.now = start.Add(5 * time.Second)
	if d := c.step(); len(d.Writes) != 2 || d.Desired.Ring.Len() != 6 {
		t.Errorf("writes %v of %d backends, want the newest ring", names(d.Writes), d.Desired.Ring.Len())
	}
	c.wantNumbers(2, 2)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
}

// TestCoalescingKeepsSlotB: pods that mount it cannot start without it.
func TestCoalescingKeepsSlotB(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.seen.SlotB = plan.Object{Name: "edge-b"}
	c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
	if d := c.step(); d.Wait == 0 || !slices.Equal(names(d.Writes), []string{"edge-b"}) {
		t.Errorf("wait %v, writes %v", d.Wait, names(d.Writes))
	}
	c.wantNumbers(1, 1)
}

// TestClockAhead: a publication that was made by a clock that is ahead does not hold up the next one.
func TestClockAhead(t *testing.T) {
	c := newCluster(t, spec(3))
	c.now = start.Add(48 * time.Hour)
	c.step()
	c.now = start
	c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
	if d := c.step(); d.Wait != 0 || len(d.Writes) != 2 {
		t.Errorf("wait %v, writes %v", d.Wait, names(d.Writes))
	}
	c.wantNumbers(2, 2)
}

// TestCoalescingDoesNotKeepADamagedRing: there is nothing worth waiting with.
func TestCoalescingDoesNotKeepADamagedRing(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.seen.SlotA = plan.Object{Name: "edge-a"}
	c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
	if d := c.step(); d.Wait != 0 || len(d.Writes) != 2 {
		t.Errorf("wait %v, writes %v", d.Wait, names(d.Writes))
	}
	c.wantNumbers(2, 2)
}

func TestRestore(t *testing.T) {
	rows := map[string]struct {
		damage func(*cluster)
		want   []string
	}{
		"slot deleted":       {func(c *cluster) { c.seen.SlotA = plan.Object{Name: "edge-a"} }, []string{"edge-a"}},
		"empty slot deleted": {func(c *cluster) { c.seen.SlotB = plan.Object{Name: "edge-b"} }, []string{"edge-b"}},
		"routing deleted":    {func(c *cluster) { c.seen.Routing = plan.Object{Name: "edge-routing"} }, []string{"edge-routing"}},
		"payload edited":     {func(c *cluster) { c.seen.SlotA.ContentDigest = "x" }, []string{"edge-a"}},
		"routing edited":     {func(c *cluster) { c.seen.Routing.ContentDigest, c.seen.Routing.FileDigest = "x", "y" }, []string{"edge-routing"}},
		"label removed":      {func(c *cluster) { c.seen.Routing.MetadataIntact = false }, []string{"edge-routing"}},
		"revision edited":    {func(c *cluster) { c.seen.SlotA.Annotations[v1alpha1.AnnotationRevision] = "0" }, []string{"edge-a"}},
		"revision raised":    {func(c *cluster) { c.seen.SlotA.Annotations[v1alpha1.AnnotationRevision] = "99" }, []string{"edge-a"}},
		"revision too large": {func(c *cluster) { c.seen.SlotA.Annotations[v1alpha1.AnnotationRevision] = "9223372036854775807" }, []string{"edge-a"}},
		"generation raised":  {func(c *cluster) { c.seen.Routing.Annotations[v1alpha1.AnnotationGeneration] = "99" }, []string{"edge-routing"}},
		"all of it raised": {func(c *cluster) {
			c.seen.Routing.Annotations[v1alpha1.AnnotationGeneration] = "9223372036854775807"
			c.seen.Routing.FileDigest, c.seen.Routing.ContentDigest = "x", "y"
			c.seen.Routing.Annotations[v1alpha1.AnnotationContentDigest] = "y"
		}, []string{"edge-routing"}},
		"generation edited":  {func(c *cluster) { c.seen.Routing.Annotations[v1alpha1.AnnotationGeneration] = "x" }, []string{"edge-routing"}},
		"everything deleted": {func(c *cluster) { c.lose("edge-a", "edge-b", "edge-routing") }, []string{"edge-b", "edge-a", "edge-routing"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, spec(3))
			c.step()
			c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
			c.now = c.now.Add(time.Minute)
			c.step()
			before, status := mapOf(c.seen), c.ring.Status
			row.damage(c)
			c.now = c.now.Add(time.Second)
			d := c.step()
			if !d.Restores || !slices.Equal(names(d.Writes), row.want) {
				t.Errorf("restores %v, writes %v, want %v", d.Restores, names(d.Writes), row.want)
			}
			if diff := cmp.Diff(status, c.ring.Status); diff != "" {
				t.Errorf("the status has changed:\n%s", diff)
			}
			for _, name := range row.want {
				if diff := cmp.Diff(before[name], mapOf(c.seen)[name]); diff != "" {
					t.Errorf("%s is not as it was:\n%s", name, diff)
				}
			}
			c.wantNumbers(2, 2)
		})
	}
}

func mapOf(o plan.Observation) map[string]plan.Object {
	m := map[string]plan.Object{}
	for _, object := range []plan.Object{o.SlotA, o.SlotB, o.Routing} {
		object.Annotations = maps.Clone(object.Annotations)
		m[object.Name] = object
	}
	return m
}

// TestLostStatus: a status that was lost, or that was not written before a crash, is found again in what is published.
func TestLostStatus(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
	c.now = c.now.Add(time.Minute)
	before := c.ring.Status
	c.step()
	for name, status := range map[string]v1alpha1.HashRingStatus{"lost": {}, "from before the crash": before} {
		t.Run(name, func(t *testing.T) {
			c.ring.Status = status
			if d := c.step(); len(d.Writes) != 0 {
				t.Errorf("writes %v", names(d.Writes))
			}
			c.wantNumbers(2, 2)
		})
	}
}

// TestCrashBetweenWrites stops behind each write of a publication and goes on from what was written.
func TestCrashBetweenWrites(t *testing.T) {
	for written := range 3 {
		c := newCluster(t, spec(3))
		c.step()
		c.now = c.now.Add(time.Minute)
		c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(4) })
		want := plan.Decide(c.ring, rings, c.seen, c.now)
		for _, cm := range want.Writes[:min(written, len(want.Writes))] {
			c.write(cm)
		}
		c.now = c.now.Add(time.Second)
		c.step()
		c.wantNumbers(2, 2)
		for _, cm := range want.Publication.ConfigMaps {
			if got := c.object(cm.Name).ContentDigest; got != cm.Annotations[v1alpha1.AnnotationContentDigest] {
				t.Errorf("after %d writes: %s differs from an undisturbed run", written, cm.Name)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	rows := map[string]struct {
		change func(*v1alpha1.HashRingSpec)
		reason v1alpha1.ConditionReason
		want   []string
	}{
		"no backends":    {func(s *v1alpha1.HashRingSpec) { s.Backends = nil }, v1alpha1.ReasonNoBackends, []string{"spec.backends", "none of 0 backends"}},
		"all drained":    {func(s *v1alpha1.HashRingSpec) { drain(s) }, v1alpha1.ReasonNoBackends, []string{"none of 3 backends has a weight above 0"}},
		"same address":   {func(s *v1alpha1.HashRingSpec) { s.Backends[2].Address = "10.0.0.0" }, v1alpha1.ReasonDuplicateIdentity, []string{`spec.backends[0] "c0" and spec.backends[2] "c2"`, `"10.0.0.0:8080"`}},
		"same name":      {func(s *v1alpha1.HashRingSpec) { s.Backends[2].Name = "c0" }, v1alpha1.ReasonDuplicateIdentity, []string{`same name "c0"`}},
		"not an address": {func(s *v1alpha1.HashRingSpec) { s.Backends[1].Address = "cache" }, v1alpha1.ReasonInvalidSpec, []string{"spec.backends[1]", `"cache:8080"`, "IP address"}},
		"no port":        {func(s *v1alpha1.HashRingSpec) { s.Backends[1].Port = nil }, v1alpha1.ReasonInvalidSpec, []string{"spec.backends[1]"}},
		"V1 with 40": {func(s *v1alpha1.HashRingSpec) {
			s.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV1, PointsPerWeight: 40}
		}, v1alpha1.ReasonInvalidSpec, []string{"spec.algorithm.pointsPerWeight", `"40"`, "160"}},
		"bad selector": {func(s *v1alpha1.HashRingSpec) {
			s.Features = []v1alpha1.Feature{{Name: "eu", Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}}
		}, v1alpha1.ReasonInvalidSpec, []string{"spec.features[0].selector", `"eu"`, "Near"}},
		"too large": {func(s *v1alpha1.HashRingSpec) {
			*s = spec(2048)
			s.Publication.Encoding = v1alpha1.EncodingPoints
		}, v1alpha1.ReasonSnapshotTooLarge, []string{
			"327680 points", "a ConfigMap takes 1048576", "spec.publication.chunks 2", "spec.publication.encoding Recipe", "spec.algorithm.pointsPerWeight 1",
		}},
		"far too large": {func(s *v1alpha1.HashRingSpec) {
			s.Algorithm.PointsPerWeight = 100_000
			*s.Backends[0].Weight = 1_000_000
		}, v1alpha1.ReasonSnapshotTooLarge, []string{
			"100000200000 points, at most 268435456 are built: spec.algorithm.pointsPerWeight 268 would fit",
		}},
		"far too large for V1": {func(s *v1alpha1.HashRingSpec) {
			s.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV1, PointsPerWeight: 160}
			*s.Backends[0].Weight = 1_000_000
			*s.Backends[1].Weight = 1_000_000
		}, v1alpha1.ReasonSnapshotTooLarge, []string{"320000160 points, at most 268435456 are built: a sum of weights of 1677721 would fit"}},
		"too large for 16 chunks": {func(s *v1alpha1.HashRingSpec) {
			*s = large(16, v1alpha1.EncodingPoints)
			s.Algorithm.PointsPerWeight = 100_000
		}, v1alpha1.ReasonSnapshotTooLarge, []string{
			"204800000 points", "16 ConfigMaps take 16777216: spec.publication.encoding Recipe or Auto, or spec.algorithm.pointsPerWeight",
		}},
		"routing too large": {func(s *v1alpha1.HashRingSpec) {
			*s = spec(4096)
			s.Identity, s.Algorithm.PointsPerWeight = v1alpha1.IdentityName, 1
			for i := range s.Backends {
				s.Backends[i].Name += strings.Repeat("x", 200)
			}
		}, v1alpha1.ReasonSnapshotTooLarge, []string{"routing.json", "524288"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, spec(3))
			row.change(&c.ring.Spec)
			c.step()
			reason := string(row.reason)
			c.wantConditions("Ready=False/"+reason, "Published=False/"+reason, "Stalled=True/"+reason)
			for _, part := range append(row.want, "no ring has been published yet") {
				if !strings.Contains(c.message(), part) {
					t.Errorf("message %q does not say %q", c.message(), part)
				}
			}
		})
	}
}

func drain(s *v1alpha1.HashRingSpec) {
	for i := range s.Backends {
		s.Backends[i].Weight = ptr.To(int32(0))
	}
}

// proposedNumber returns the number that the message of a refusal proposes for a field.
func proposedNumber(t *testing.T, s v1alpha1.HashRingSpec, field string) int32 {
	t.Helper()
	_, err := plan.Build(s)
	refusal := (*plan.Refusal)(nil)
	if !errors.As(err, &refusal) {
		t.Fatalf("%d backends: error %v", len(s.Backends), err)
	}
	var proposed int32
	_, rest, _ := strings.Cut(refusal.Message, field)
	if _, err := fmt.Sscan(rest, &proposed); err != nil {
		t.Fatalf("%q: %v", refusal.Message, err)
	}
	return proposed
}

// TestWhatFitsFits builds with the number that the message proposes, and with one more that must not fit by much.
func TestWhatFitsFits(t *testing.T) {
	for _, n := range []int{300, 2048, 4096} {
		s := spec(n)
		s.Algorithm.PointsPerWeight, s.Publication.Encoding = 5000, v1alpha1.EncodingPoints
		proposed := proposedNumber(t, s, "spec.algorithm.pointsPerWeight ")
		s.Algorithm.PointsPerWeight = proposed
		if _, err := plan.Build(s); err != nil {
			t.Errorf("%d backends: the proposed %d: %v", n, proposed, err)
		}
		s.Algorithm.PointsPerWeight = proposed + proposed/20 + 2
		if _, err := plan.Build(s); err == nil {
			t.Errorf("%d backends: much more than the proposed %d fits", n, proposed)
		}
	}
}

func TestLastGoodRingStays(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	active := c.ring.Status.Active
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends[1].Address = "nowhere" })
	if d := c.step(); len(d.Writes) != 0 {
		t.Errorf("writes %v", names(d.Writes))
	}
	if diff := cmp.Diff(active, c.ring.Status.Active); diff != "" || c.ring.Status.Backends.Total != 3 {
		t.Errorf("the active ring changed in the status:\n%s", diff)
	}
	if want := "revision 1 stays published"; !strings.Contains(c.message(), want) {
		t.Errorf("message %q does not say %q", c.message(), want)
	}
	// What is lost meanwhile is restored from the record.
	c.seen.SlotA, c.slot = plan.Object{Name: "edge-a"}, nil
	if d := c.step(); len(d.Writes) != 1 || d.Writes[0].Name != "edge-a" {
		t.Errorf("writes %v", names(d.Writes))
	}
	if got := c.published().Digest(); got != active.Digest {
		t.Errorf("restored %s, not %s", got, active.Digest)
	}
	if want := "revision 1 had been edited or deleted and was restored"; !strings.Contains(c.message(), want) {
		t.Errorf("message %q does not say %q", c.message(), want)
	}
	c.wantConditions("Ready=False/InvalidSpec", "Published=False/InvalidSpec", "Stalled=True/InvalidSpec")
	// Without a record there is nothing to restore it from.
	c.deleteRecord("edge-1")
	c.seen.SlotA, c.slot = plan.Object{Name: "edge-a"}, nil
	c.step()
	if want := "has been edited or deleted since"; !strings.Contains(c.message(), want) {
		t.Errorf("message %q does not say %q", c.message(), want)
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(3) })
	c.step()
	c.wantNumbers(1, 1)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
}

func TestNameConflict(t *testing.T) {
	c := newCluster(t, spec(3))
	c.seen.Routing.Holder = plan.Foreign
	if d := c.step(); len(d.Writes) != 0 {
		t.Errorf("writes %v", names(d.Writes))
	}
	c.wantConditions("Ready=False/NameConflict", "Published=False/NameConflict", "Stalled=True/NameConflict")
	if !strings.Contains(c.message(), "ConfigMap cdn/edge-routing exists") {
		t.Errorf("message %q", c.message())
	}
}

func TestFailure(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.ring.Status = plan.Status(c.ring, plan.Decide(c.ring, rings, c.seen, c.now), errors.New("etcd is on fire "+strings.Repeat("ä", 1000)), c.now)
	c.wantConditions("Ready=False/PublishFailed", "Published=False/PublishFailed", "Reconciling=True/PublishFailed")
	if len(c.message()) > 1024 || !strings.Contains(c.message(), "etcd is on fire") || strings.Contains(c.message(), "\ufffd") {
		t.Errorf("message of %d bytes: %q", len(c.message()), c.message())
	}
	c.wantNumbers(1, 1)
}

func TestFeatures(t *testing.T) {
	s := spec(4)
	s.Backends[0].Labels = map[string]string{"eu": "true", "tier": "ssd"}
	s.Backends[1].Labels = map[string]string{"eu": "true", "tier": "hdd"}
	s.Backends[2].Labels = map[string]string{"tier": "nvme"}
	s.Features = []v1alpha1.Feature{
		{Name: "fast", Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "In", Values: []string{"ssd", "nvme"}}}}},
		{Name: "eu", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"eu": "true"}}},
	}
	d, err := plan.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, d)
	for feature, want := range map[string][]bool{"eu": {true, true, false, false}, "fast": {true, false, true, false}} {
		for i := range want {
			if got := r.HasFeature(i, feature); got != want[i] {
				t.Errorf("backend %s has %s: %v, want %v", r.ID(i), feature, got, want[i])
			}
		}
	}
}

func TestWarnings(t *testing.T) {
	s := spec(1)
	s.Backends = append(s.Backends, v1alpha1.Backend{Name: "fixed", Address: "10.0.87.193", Port: ptr.To(int32(3254))})
	c := newCluster(t, s)
	c.step()
	if w := c.ring.Status.Warnings; len(w) != 1 || w[0].Reason != v1alpha1.WarningBackendOnFixedPoint || !strings.Contains(w[0].Message, "10.0.87.193:3254") {
		t.Errorf("warnings %+v", w)
	}
}

// TestWarningReasons: the engine and the API have the same words.
func TestWarningReasons(t *testing.T) {
	for kind, want := range map[ring.WarningKind]v1alpha1.WarningReason{
		ring.BackendOnFixedPoint: v1alpha1.WarningBackendOnFixedPoint,
		ring.BackendShadowed:     v1alpha1.WarningBackendShadowed,
		ring.TieOrderBias:        v1alpha1.WarningTieOrderBias,
	} {
		if kind.String() != string(want) {
			t.Errorf("the engine says %s, the API %s", kind, want)
		}
	}
}

func TestNGINXIdentity(t *testing.T) {
	s := spec(0)
	s.Identity = v1alpha1.IdentityNGINX
	s.Backends = []v1alpha1.Backend{{Name: "a", Address: "Cache.example"}, {Name: "b", Address: "[0:0::1]", Port: ptr.To(int32(80))}}
	d, err := plan.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, d)
	if got := []string{r.ID(0), r.ID(1)}; !slices.Equal(got, []string{"[0:0::1]:80", "Cache.example"}) || d.Addresses != nil {
		t.Errorf("identities %q, addresses %v: the spelling counts", got, d.Addresses)
	}
}

func TestContentDigestIsFramed(t *testing.T) {
	seen := map[string]string{}
	for name, digest := range map[string]string{
		"empty":      plan.ContentDigest(nil, nil),
		"data":       plan.ContentDigest(map[string]string{"a": "b"}, nil),
		"binary":     plan.ContentDigest(nil, map[string][]byte{"a": []byte("b")}),
		"moved":      plan.ContentDigest(map[string]string{"ab": ""}, nil),
		"two":        plan.ContentDigest(map[string]string{"a": "b", "c": "d"}, nil),
		"run on":     plan.ContentDigest(map[string]string{"a": "bc", "d": ""}, nil),
		"both kinds": plan.ContentDigest(map[string]string{"a": "b"}, map[string][]byte{"c": []byte("d")}),
	} {
		if other, ok := seen[digest]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[digest] = name
	}
}

// TestPure keeps the package away from clients, contexts and clocks: what it may not import it cannot use.
func TestPure(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		if path == "context" || path == "os" || strings.Contains(path, "client") || strings.Contains(path, "controller-runtime") || strings.Contains(path, "logr") {
			t.Errorf("package plan imports %s", path)
		}
	}
}
