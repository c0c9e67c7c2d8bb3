// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// asStatic returns pods as backends of spec that are on the same ring.
func asStatic(list []pod) []v1alpha1.Backend {
	var backends []v1alpha1.Backend
	for _, p := range list {
		backends = append(backends, v1alpha1.Backend{
			Name: p.name, Address: p.address, Port: ptr.To(int32(8080)), Weight: ptr.To(int32(1)), Zone: "a",
		})
	}
	return backends
}

// TestNoLongerDeclared: backends that are taken out of spec and stay in a source are endpoints from then on, although the ring
// is the same to the byte.
func TestNoLongerDeclared(t *testing.T) {
	s := addressed()
	s.Backends = asStatic(pods(10))
	c := newCluster(t, s)
	c.see(pods(10))
	c.step()
	active := c.ring.Status.Active
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = nil })
	if d := c.after(minute); len(d.Records) == 0 || d.Records[0].Declared != nil || len(d.Writes) != 0 {
		t.Errorf("record %+v, writes %v", d.Records, names(d.Writes))
	}
	if d := c.after(minute); len(d.Records) != 0 {
		t.Error("the record is written once more")
	}
	c.see(gone(pods(10), 1))
	c.after(minute)
	c.wantSame(active)
}

// TestDeclaredBesideNewSource: those of a ring without sources are known as spec's once there is a source.
func TestDeclaredBesideNewSource(t *testing.T) {
	s := addressed()
	s.BackendsFrom, s.Backends = nil, asStatic(pods(4))
	c := newCluster(t, s)
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.BackendsFrom = addressed().BackendsFrom })
	c.see(nil)
	c.after(minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = s.Backends[1:] })
	c.after(minute)
	c.wantIDs("10.244.0.2:8080", "10.244.0.3:8080", "10.244.0.4:8080")
}

// TestHeldStaysDeclared: what was taken out of spec and is held is told from endpoints as long as it is on the ring.
func TestHeldStaysDeclared(t *testing.T) {
	s := addressed()
	s.Backends = asStatic(pods(10))
	c := newCluster(t, s)
	c.see(nil)
	c.step()
	active := c.ring.Status.Active
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = s.Backends[6:] })
	for range 3 {
		if d := c.after(time.Hour); len(d.Records) != 0 {
			t.Errorf("another record: %v", d.Records[0].Declared)
		}
		c.wantSame(active)
		if down := c.file().Down; down != nil {
			t.Errorf("down %v: they may run all the same", down)
		}
	}
}

// TestRecordOfBefore: a record that an operator wrote which knew of nothing declared is not written again for a ring without sources.
func TestRecordOfBefore(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.seen.History[0].ContentDigest = ring.Digest(c.recipes["edge-1"])
	if d := c.step(); len(d.Records) != 0 {
		t.Errorf("record %+v", d.Records)
	}
}

// TestRecordSize: a record that is written fits, and one that would not is refused.
func TestRecordSize(t *testing.T) {
	for _, row := range []struct {
		host int // Bytes in front of the number.
		want string
	}{
		{140, ""},
		{180, "the record of the ring would have 1859149 bytes, of which 792001 list the identities of spec.backends beside sources, the limit is 1507328"},
	} {
		s := addressed()
		s.Identity, s.Algorithm.PointsPerWeight = v1alpha1.IdentityNGINX, 1
		for i := range 4000 {
			s.Backends = append(s.Backends, v1alpha1.Backend{
				Name: fmt.Sprint("b", i), Address: fmt.Sprintf("%s%04d.example", strings.Repeat("x", row.host), i),
				Port: ptr.To(int32(80)), Weight: ptr.To(int32(1)),
			})
		}
		c := newCluster(t, s)
		c.see(nil)
		d := c.step()
		if row.want != "" {
			c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSnapshotTooLarge, row.want)
			continue
		}
		if len(d.Records) == 0 {
			t.Fatal(c.message())
		}
		text, err := json.Marshal(map[string]any{"digest": d.Records[0].Digest, "recipe": d.Records[0].Recipe, "declared": d.Records[0].Declared})
		if err != nil || len(text) > plan.MaxRecordBytes || len(text) < plan.MaxRecordBytes*95/100 {
			t.Errorf("the record has %d bytes of %d, which tells nothing: %v", len(text), plan.MaxRecordBytes, err)
		}
	}
}
