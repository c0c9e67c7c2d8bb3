// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

var graveside = time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)

// remnants returns what is left of HashRing edge by name, with the annotations that routing has.
func remnants(routing map[string]string, names ...string) []plan.Remnant {
	var left []plan.Remnant
	for _, name := range names {
		remnant := plan.Remnant{Name: name}
		if name == "edge-routing" {
			remnant.Annotations = routing
		}
		left = append(left, remnant)
	}
	return left
}

func TestBury(t *testing.T) {
	all := []string{"edge-a", "edge-b", "edge-routing", "edge-7", "edge-8"}
	allInOrder := []string{"edge-b", "edge-a", "edge-8", "edge-7", "edge-routing"}
	stay := func(tombstone, until string) map[string]string {
		m := map[string]string{}
		if tombstone != "" {
			m[v1alpha1.AnnotationTombstone] = tombstone
		}
		if until != "" {
			m[v1alpha1.AnnotationTombstoneUntil] = until
		}
		return m
	}
	second := func(s int) time.Time { return graveside.Truncate(time.Second).Add(time.Duration(s) * time.Second) }
	day3 := second(1).Add(72 * time.Hour) // The mark has whole seconds, and nothing goes before its time.
	for name, row := range map[string]struct {
		left []plan.Remnant
		want plan.Burial
	}{
		"nothing left":   {nil, plan.Burial{}},
		"not marked yet": {remnants(stay("1h0m0s", ""), all...), plan.Burial{Mark: "edge-routing", Until: second(3601), Wait: second(3601).Sub(graveside)}},
		"marked":         {remnants(stay("1h0m0s", "2026-03-01T12:30:00Z"), all...), plan.Burial{Until: second(1800), Wait: second(1800).Sub(graveside)}},
		"marked in another time zone": {
			remnants(stay("1h0m0s", "2026-03-01T14:30:00+02:00"), all...), plan.Burial{Until: second(1800), Wait: second(1800).Sub(graveside)},
		},
		"marked beyond what spec allows": {
			remnants(stay("1h0m0s", "2027-03-01T12:00:00Z"), all...),
			plan.Burial{Until: second(365 * 86400), Wait: second(365 * 86400).Sub(graveside)},
		},
		"over":                  {remnants(stay("1h0m0s", "2026-03-01T12:00:00Z"), all...), plan.Burial{Until: second(0), Delete: allInOrder}},
		"not over":              {remnants(stay("1h0m0s", "2026-03-01T12:00:01Z"), all...), plan.Burial{Until: second(1), Wait: second(1).Sub(graveside)}},
		"at once":               {remnants(stay("0s", ""), all...), plan.Burial{Until: second(1), Delete: allInOrder}},
		"at once, though there": {remnants(stay("0s", "2026-03-01T12:30:00Z"), all...), plan.Burial{Until: second(1800), Delete: allInOrder}},
		"no annotation":         {remnants(nil, all...), plan.Burial{Mark: "edge-routing", Until: day3, Wait: day3.Sub(graveside)}},
		"unreadable tombstone":  {remnants(stay("3 days", ""), all...), plan.Burial{Mark: "edge-routing", Until: day3, Wait: day3.Sub(graveside)}},
		"negative tombstone":    {remnants(stay("-1s", ""), all...), plan.Burial{Mark: "edge-routing", Until: day3, Wait: day3.Sub(graveside)}},
		"longest tombstone": {
			remnants(stay("720h0m0s", ""), all...),
			plan.Burial{Mark: "edge-routing", Until: second(1).Add(720 * time.Hour), Wait: second(1).Add(720 * time.Hour).Sub(graveside)},
		},
		"too long a tombstone": {remnants(stay("720h0m1s", ""), all...), plan.Burial{Mark: "edge-routing", Until: day3, Wait: day3.Sub(graveside)}},
		"unreadable mark":      {remnants(stay("1h0m0s", "soon"), all...), plan.Burial{Mark: "edge-routing", Until: second(3601), Wait: second(3601).Sub(graveside)}},
		"routing is gone": {
			remnants(nil, "edge-b", "edge-a", "edge-7"), plan.Burial{Mark: "edge-7", Until: day3, Wait: day3.Sub(graveside)},
		},
		"routing is gone, and what was marked instead is over": {
			append(remnants(nil, "edge-b", "edge-a"), plan.Remnant{Name: "edge-7", Annotations: stay("", "2026-03-01T11:00:00Z")}),
			plan.Burial{Until: second(-3600), Delete: []string{"edge-b", "edge-a", "edge-7"}},
		},
		"marked twice": {
			append(remnants(stay("1h0m0s", "2026-03-01T11:00:00Z"), all[:3]...), plan.Remnant{Name: "edge-7", Annotations: stay("", "2026-03-01T12:00:10Z")}),
			plan.Burial{Until: second(10), Wait: second(10).Sub(graveside)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // The order in which they were listed does not matter.
				rand.Shuffle(len(row.left), func(i, j int) { row.left[i], row.left[j] = row.left[j], row.left[i] })
				if diff := cmp.Diff(row.want, plan.Bury("edge", row.left, graveside)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestBuryEnds: what is left goes in the end, whatever is deleted meanwhile.
func TestBuryEnds(t *testing.T) {
	left := remnants(map[string]string{v1alpha1.AnnotationTombstone: "1h0m0s"}, "edge-a", "edge-b", "edge-routing")
	now, marks := graveside, 0
	for step := range 20 {
		b := plan.Bury("edge", left, now)
		if b.Mark != "" {
			marks++
			for i := range left {
				if left[i].Name == b.Mark {
					left[i].Annotations = map[string]string{v1alpha1.AnnotationTombstoneUntil: plan.FormatUntil(b.Until)}
				}
			}
			if again := plan.Bury("edge", left, now); again.Mark != "" || !again.Until.Equal(b.Until) {
				t.Fatalf("step %d: marked until %v, read as %+v", step, b.Until, again)
			}
		}
		if len(b.Delete) > 0 {
			left = nil
			break
		}
		if step == 0 { // Somebody deletes what says so.
			left = left[:2]
		}
		now = now.Add(b.Wait)
	}
	if left != nil || marks != 2 || now.Sub(graveside) > 74*time.Hour {
		t.Errorf("%d objects are left at %v, after %d marks", len(left), now, marks)
	}
}

func TestTombstone(t *testing.T) {
	spec := v1alpha1.HashRingSpec{}
	if got := plan.Tombstone(spec); got != plan.DefaultTombstone {
		t.Errorf("without one it is %v", got)
	}
	spec.Deletion.Tombstone = &metav1.Duration{}
	if got := plan.Tombstone(spec); got != 0 {
		t.Errorf("0s is %v", got)
	}
}

func TestIsConfigMapName(t *testing.T) {
	for name, want := range map[string]bool{
		"edge-a": true, "edge-b": true, "edge-routing": true, "edge-a-1": true, "edge-b-15": true,
		"edge": false, "edge-a-0": false, "edge-a-16": false, "edge-a-01": false, "edge-c": false, "edge-7": false, "edge-notes": false, "other-a": false,
	} {
		if got := plan.IsConfigMapName("edge", name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
