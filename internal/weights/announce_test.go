// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func announcement(policy string, epoch, version int64) Announcement {
	return Announcement{Policy: policy, Epoch: epoch, Version: version, Weights: Served{"a": uint32(version) + 1}}
}

func TestTheLaterAnnouncementIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		epoch, version int64
		kept, stale    bool
	}{
		"next version": {3, 6, true, false}, "the same": {3, 5, false, false}, "an older version": {3, 4, false, false},
		"a higher epoch with an older version": {4, 1, true, false}, "a lower epoch with a newer version": {2, 99, false, true},
	} {
		b, stale := NewBoard(), false
		b.Stale = func(Announcement) { stale = true }
		b.Put(announcement("p", 3, 5))
		kept := b.Put(announcement("p", test.epoch, test.version))
		got, _ := b.Get("p")
		if kept != test.kept || stale != test.stale || kept != (got.Epoch == test.epoch && got.Version == test.version && name != "the same") {
			t.Errorf("%s: kept %v, stale %v, epoch %d version %d", name, kept, stale, got.Epoch, got.Version)
		}
	}
}

func TestAWatcherIsToldTheLatestInOrder(t *testing.T) {
	b := NewBoard()
	b.Put(announcement("b", 1, 1))
	b.Put(announcement("a", 1, 1))
	w := b.Watch()
	if diff := cmp.Diff([]Announcement{announcement("a", 1, 1), announcement("b", 1, 1)}, w.Take()); diff != "" {
		t.Error(diff)
	}
	if got := w.Take(); len(got) != 0 {
		t.Errorf("they are told again: %v", got)
	}
	for version := range int64(50) {
		b.Put(announcement("b", 1, version+2))
	}
	b.Put(announcement("c", 1, 1))
	b.Remove("c")
	<-w.Ready
	if diff := cmp.Diff([]Announcement{announcement("b", 1, 51)}, w.Take()); diff != "" {
		t.Error(diff)
	}
	w.Close()
	b.Put(announcement("b", 1, 52))
	select {
	case <-w.Ready:
		t.Error("a closed watcher is told")
	default:
	}
}

// TestASlowWatcherNeverMissesTheLast with all of them at the same time.
func TestASlowWatcherNeverMissesTheLast(t *testing.T) {
	b := NewBoard()
	const last, policies = 500, 5
	var done sync.WaitGroup
	for range 8 {
		w := b.Watch()
		done.Go(func() {
			defer w.Close()
			seen := map[string]int64{}
			for finished := 0; finished < policies; {
				<-w.Ready
				for _, a := range w.Take() {
					if a.Version <= seen[a.Policy] {
						t.Errorf("version %d of %s after %d", a.Version, a.Policy, seen[a.Policy])
					}
					if seen[a.Policy] = a.Version; a.Version == last {
						finished++
					}
				}
			}
		})
	}
	for p := range policies {
		done.Go(func() {
			for version := range int64(last) {
				b.Put(announcement(fmt.Sprint("p", p), 1, version+1))
			}
		})
	}
	done.Wait()
}
