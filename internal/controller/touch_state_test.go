// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestTouchRecords: a pod is tried again later each time; one that refuses for good at some time no more, until there is something new.
func TestTouchRecords(t *testing.T) {
	key := types.NamespacedName{Namespace: "cdn", Name: "edge-0"}
	of := touchable{key: key, uid: "1", marks: map[string]string{"ring": "41-x"}}
	for name, final := range map[string]bool{"it refuses": true, "the API server fails": false} {
		t.Run(name, func(t *testing.T) {
			records, now := touchRecords{}, time.Unix(0, 0)
			for i := range 8 {
				if records.over(of, now) {
					t.Fatalf("attempt %d is not made", i)
				}
				records.note(of, touchRecord{refusal: "no", final: final}, now)
				if !records.over(of, now) {
					t.Fatalf("after attempt %d it is tried again at once", i)
				}
				want := []time.Duration{1, 2, 4, 8, 16, 16, 16, 16}[i] * time.Second
				if final && i == 5 {
					want = 0
				}
				if got := records.next(key, now); got != want {
					t.Fatalf("after attempt %d it is tried again in %v, want %v", i, got, want)
				}
				now = now.Add(max(want, time.Hour))
				if final && i == 5 {
					break
				}
			}
			if got := records.over(of, now); got != final {
				t.Errorf("in the end it is over: %v", got)
			}
			for name, next := range map[string]touchable{
				"another publication": {key: key, uid: "1", marks: map[string]string{"ring": "42-x"}},
				"another pod":         {key: key, uid: "2", marks: of.marks},
				"another ring":        {key: key, uid: "1", marks: map[string]string{"ring": "41-x", "other": "1-x"}},
			} {
				if records.over(next, now) {
					t.Errorf("%s is not tried", name)
				}
			}
			if why, mark := records.refusal(key, "1", "ring"); why != "no" || mark != "41-x" {
				t.Errorf("the refusal is %q of %q", why, mark)
			}
			if why, _ := records.refusal(key, "2", "ring"); why != "" {
				t.Errorf("another pod has the refusal %q", why)
			}
		})
	}
}

// TestTouchRecordsOfTouched: what was touched is not touched again while the cache is behind.
func TestTouchRecordsOfTouched(t *testing.T) {
	of := touchable{key: types.NamespacedName{Name: "edge-0"}, uid: "1", marks: map[string]string{"ring": "41-x", "other": "1-x"}}
	records, now := touchRecords{}, time.Unix(0, 0)
	records.note(of, touchRecord{}, now)
	of.marks = map[string]string{"ring": "41-x"} // The cache has the other by now.
	if !records.over(of, now.Add(time.Hour)) || records.next(of.key, now) != 0 {
		t.Error("it would be touched again")
	}
	records.forget(of.key)
	if records.over(of, now) {
		t.Error("it is not forgotten")
	}
}
