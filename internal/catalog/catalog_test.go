// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

func hashRing(namespace, name string) v1alpha1.HashRing {
	return v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Status: v1alpha1.HashRingStatus{
			Active: &v1alpha1.ActiveRing{
				Revision: 12, Digest: "sha256:" + name, Algorithm: v1alpha1.ActiveAlgorithm{Version: v1alpha1.AlgorithmV3},
				PublishedAt: metav1.NowMicro(),
			},
			Snapshot:   &v1alpha1.SnapshotSize{Points: 480, Bytes: 2000},
			Conditions: []metav1.Condition{{Type: "Published", Reason: "Other"}, {Type: "Ready", Reason: "RingPublished"}},
		},
	}
}

func part(namespace, ring, suffix string, annotations map[string]string) catalog.Part {
	return catalog.Part{
		Namespace: namespace, Name: ring + suffix, Labels: map[string]string{v1alpha1.LabelRing: ring}, Annotations: annotations,
	}
}

func TestOf(t *testing.T) {
	until := func(text string) map[string]string {
		return map[string]string{v1alpha1.AnnotationTombstoneUntil: text, v1alpha1.AnnotationRingUID: "gone"}
	}
	slot := map[string]string{v1alpha1.AnnotationDigest: "sha256:gone", v1alpha1.AnnotationRevision: "7"}
	rings := []v1alpha1.HashRing{
		hashRing("cdn", "edge"), hashRing("cdn", "api"), hashRing("app", "z"),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "new", UID: "uid-new"}},
	}
	parts := []catalog.Part{
		part("cdn", "old", "-routing", until("2026-03-01T14:00:00+02:00")),
		part("cdn", "old", "-b", until("2026-03-01T11:00:00Z")), // Written while the routing ConfigMap was missing.
		part("cdn", "old", "-a", slot),
		part("app", "old", "-routing", until("2026-03-02T00:00:00Z")),
		part("cdn", "edge", "-routing", until("2026-03-01T12:00:00Z")), // It is there again.
		part("cdn", "odd", "-routing", until("soon")),
		part("cdn", "live", "-a", slot),
		part("cdn", "moved", "-routing", until("2026-03-01T12:00:00Z")), // A migration went to slot b.
		part("cdn", "moved", "-a", map[string]string{v1alpha1.AnnotationDigest: "sha256:candidate", v1alpha1.AnnotationRevision: "8"}),
		part("cdn", "moved", "-b", slot),
		{Namespace: "cdn", Name: "theirs", Annotations: until("2026-03-01T12:00:00Z")},
	}
	want := catalog.Catalog{
		Rings: []catalog.Ring{
			{Namespace: "app", Name: "new", UID: "uid-new"},
			{Namespace: "app", Name: "z", UID: "uid-z", Digest: "sha256:z", Revision: 12, Points: 480, Bytes: 2000, Algorithm: "V3", State: "RingPublished"},
			{Namespace: "cdn", Name: "api", UID: "uid-api", Digest: "sha256:api", Revision: 12, Points: 480, Bytes: 2000, Algorithm: "V3", State: "RingPublished"},
			{Namespace: "cdn", Name: "edge", UID: "uid-edge", Digest: "sha256:edge", Revision: 12, Points: 480, Bytes: 2000, Algorithm: "V3", State: "RingPublished"},
		},
		Tombstones: []catalog.Tombstone{
			{Namespace: "app", Name: "old", UID: "gone", Until: "2026-03-02T00:00:00Z"},
			{Namespace: "cdn", Name: "moved", UID: "gone", Digest: "sha256:gone", Revision: 7, Until: "2026-03-01T12:00:00Z"},
			{Namespace: "cdn", Name: "old", UID: "gone", Digest: "sha256:gone", Revision: 7, Until: "2026-03-01T12:00:00Z"},
		},
	}
	file, err := routing.File{
		APIVersion: routing.APIVersion, Ring: "cdn/moved", Generation: 3, Stable: routing.NewReference(routing.SlotB, ring.Digest(nil), "V2", 1),
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		if parts[i].Name == "moved-routing" {
			parts[i].Routing = string(file)
		}
	}
	first := ""
	for range 10 {
		rand.Shuffle(len(rings), func(i, j int) { rings[i], rings[j] = rings[j], rings[i] })
		rand.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		got := catalog.Of(rings, parts)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		file, err := got.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(file)
		}
		if string(file) != first {
			t.Fatalf("other bytes:\n%s\n%s", first, file)
		}
	}
}

func TestEncode(t *testing.T) {
	for want, c := range map[string]catalog.Catalog{
		`{"apiVersion":"ringwright.dev/v1alpha1","kind":"Catalog","rings":[],"tombstones":[]}` + "\n": {},
		`{"apiVersion":"ringwright.dev/v1alpha1","kind":"Catalog","rings":[
{"namespace":"cdn","name":"api","uid":"1","digest":"sha256:1","revision":2,"points":3,"bytes":4,"algorithm":"V2","state":"Pinned"},
{"namespace":"cdn","name":"edge","uid":"2"}
],"tombstones":[
{"namespace":"cdn","name":"old","until":"2026-03-01T12:00:00Z"}
]}
`: {
			Rings: []catalog.Ring{
				{Namespace: "cdn", Name: "api", UID: "1", Digest: "sha256:1", Revision: 2, Points: 3, Bytes: 4, Algorithm: "V2", State: "Pinned"},
				{Namespace: "cdn", Name: "edge", UID: "2"},
			},
			Tombstones: []catalog.Tombstone{{Namespace: "cdn", Name: "old", Until: "2026-03-01T12:00:00Z"}},
		},
	} {
		file, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(file)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		again, err := catalog.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Rings) > 0 && !cmp.Equal(c, again) {
			t.Errorf("read as %+v", again)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:   "unexpected end of JSON input",
		`{}`: `apiVersion "" and kind "" are not`,
		`{"apiVersion":"ringwright.dev/v2","kind":"Catalog"}`: `apiVersion "ringwright.dev/v2"`,
	} {
		if _, err := catalog.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// large returns a catalog of n rings as they are: digests and UIDs cannot be packed.
func large(n int) catalog.Catalog {
	c := catalog.Catalog{}
	for i := range n {
		sum, digest := sha256.Sum256(fmt.Append(nil, i)), sha256.Sum256(fmt.Append(nil, "digest", i))
		text := hex.EncodeToString(sum[:])
		c.Rings = append(c.Rings, catalog.Ring{
			Namespace: fmt.Sprintf("team-%d", i%100), Name: fmt.Sprintf("edge-cache-%d", i),
			UID:    text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:32],
			Digest: "sha256:" + hex.EncodeToString(digest[:]), Revision: int64(i % 50),
			Points: int64(16000 + i%977), Bytes: int64(70000 + i%7919), Algorithm: "V2", State: "RingPublished",
		})
	}
	return c
}

// TestPack: as it is where it fits, packed where it does not, and refused where not even that does.
func TestPack(t *testing.T) {
	for _, row := range []struct {
		rings  int
		packed bool
	}{{0, false}, {1000, false}, {5000, true}} {
		c := large(row.rings)
		payload, err := c.Pack()
		if err != nil {
			t.Fatal(err)
		}
		file, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		size := len(payload.Data[catalog.FileName]) + len(payload.BinaryData[catalog.GzipFileName])
		t.Logf("%d rings: %d bytes, in the ConfigMap %d", row.rings, len(file), size)
		if (len(payload.BinaryData) == 1) != row.packed || (len(payload.Data) == 1) == row.packed || size > catalog.MaxBytes {
			t.Errorf("%d rings: packed %d, plain %d", row.rings, len(payload.BinaryData), len(payload.Data))
		}
		again, err := c.Pack()
		if err != nil || !cmp.Equal(payload, again) {
			t.Errorf("%d rings: other bytes the second time, %v", row.rings, err)
		}
		unpacked, err := payload.Unpack()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := unpacked.Encode(); err != nil || string(text) != string(file) {
			t.Errorf("%d rings: it is not what was packed: %v", row.rings, err)
		}
	}
	_, err := large(20000).Pack()
	var tooLarge *catalog.TooLargeError
	if !errors.As(err, &tooLarge) || tooLarge.Rings != 20000 || tooLarge.Packed <= catalog.MaxBytes {
		t.Fatalf("20000 rings: %v", err)
	}
	if !strings.Contains(err.Error(), "the catalog of 20000 rings, 0 tombstones and 0 WeightPolicies has ") || !strings.HasSuffix(err.Error(), "and a ConfigMap takes 1048576") {
		t.Error(err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	for want, payload := range map[string]catalog.Payload{
		"there is neither catalog.json nor catalog.json.gz": {},
		"unpacking catalog.json.gz: ":                       {BinaryData: map[string][]byte{catalog.GzipFileName: []byte("text")}},
		"reading a catalog: ":                               {Data: map[string]string{catalog.FileName: "text"}},
	} {
		if _, err := payload.Unpack(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

func TestPlanCopies(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	ago := func(age time.Duration, digest string) catalog.Copy {
		return catalog.Copy{Name: catalog.CopyName(now.Add(-age)), Digest: digest}
	}
	const day = 24 * time.Hour
	one := large(1)
	policy := catalog.Policy{Keep: 3, Interval: day}
	taken := "ringwright-catalog-20260310t120000z"
	for name, row := range map[string]struct {
		c      catalog.Catalog
		kept   []catalog.Copy
		policy catalog.Policy
		want   catalog.Copies
	}{
		"the first one":           {one, nil, policy, catalog.Copies{Take: taken}},
		"nothing to copy yet":     {catalog.Catalog{}, nil, policy, catalog.Copies{}},
		"policies alone":          {catalog.Catalog{WeightPolicies: []catalog.WeightPolicy{{Name: "load"}}}, nil, policy, catalog.Copies{Take: taken}},
		"everything is gone":      {catalog.Catalog{}, []catalog.Copy{ago(day, "old")}, policy, catalog.Copies{Take: taken}},
		"no change":               {one, []catalog.Copy{ago(9*day, "new")}, policy, catalog.Copies{}},
		"a change after a while":  {one, []catalog.Copy{ago(day, "old")}, policy, catalog.Copies{Take: taken}},
		"a change soon after":     {one, []catalog.Copy{ago(day-time.Second, "old")}, policy, catalog.Copies{Wait: time.Second}},
		"back to one before last": {one, []catalog.Copy{ago(2*day, "new"), ago(day, "old")}, policy, catalog.Copies{Take: taken}},
		"the oldest goes": {
			one, []catalog.Copy{ago(day, "c"), ago(3*day, "a"), ago(2*day, "b")}, policy,
			catalog.Copies{Take: taken, Drop: []string{ago(3*day, "").Name}},
		},
		"fewer are asked for": {
			one, []catalog.Copy{ago(3*day, "a"), ago(2*day, "b"), ago(day, "new")}, catalog.Policy{Keep: 1, Interval: day},
			catalog.Copies{Drop: []string{ago(3*day, "").Name, ago(2*day, "").Name}},
		},
		"none are asked for": {one, []catalog.Copy{ago(day, "new")}, catalog.Policy{Interval: day}, catalog.Copies{Drop: []string{ago(day, "").Name}}},
		"from a clock that was ahead": {
			one, []catalog.Copy{ago(day, "old"), ago(-day, "new")}, policy, catalog.Copies{Take: taken},
		},
		"from a clock that was ahead, once": {
			one, []catalog.Copy{ago(time.Minute, "new"), ago(-day, "old")}, policy, catalog.Copies{},
		},
		"within a second": {one, []catalog.Copy{ago(0, "old")}, catalog.Policy{Keep: 3}, catalog.Copies{Wait: time.Second}},
		"with names of others": {
			one, []catalog.Copy{{Name: "ringwright-catalog-notes"}, {Name: "other"}, ago(day, "new")}, catalog.Policy{Keep: 1, Interval: day}, catalog.Copies{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, catalog.PlanCopies(row.c, "new", row.kept, row.policy, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCopyName(t *testing.T) {
	at := time.Date(2026, 3, 1, 14, 5, 6, 700, time.FixedZone("", 7200))
	name := catalog.CopyName(at)
	if name != "ringwright-catalog-20260301t120506z" {
		t.Error(name)
	}
	if got, ok := catalog.CopyTime(name); !ok || !got.Equal(at.Truncate(time.Second)) {
		t.Errorf("%v, %v", got, ok)
	}
	for _, name := range []string{"ringwright-catalog", "ringwright-catalog-", "20260301t120506z", "ringwright-catalog-20261301t120506z"} {
		if _, ok := catalog.CopyTime(name); ok {
			t.Errorf("%q is taken for a copy", name)
		}
	}
}
