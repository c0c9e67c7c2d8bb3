// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The race detector of Go 1.26 now and then ends this test with a failed check of its own (tsan_rtl.cpp:346). The same code runs
// under it in the other tests, with fewer pods.

package consumer

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestLimits: however many pods there are, and however long they take, requests have their limits, and a ring whose pods are all
// dead does not keep another one from being asked.
func TestLimits(t *testing.T) {
	c := newCluster(400)
	c.say(100, 400, 0)
	testPoller(t, c, func(p *Poller) {
		p.Follow(ring())
		p.Publish(edge, asks(1), time.Now())
		after(5 * time.Second)
		if c.most != MaxAskingOfRing {
			t.Errorf("%d requests at a time of one ring", c.most)
		}
		for i := range 5 {
			other := ring()
			other.Name, other.UID = fmt.Sprint("other", i), types.UID(fmt.Sprint(i))
			p.Follow(other)
		}
		after(5 * time.Minute) // Each of them has 300 that hang.
		if c.most <= MaxAskingOfRing || c.most > MaxAsking {
			t.Errorf("%d requests at a time", c.most)
		}
		wantCurrent(t, p.Follow(ring()), 1, 100, 400)
		c.say(0, 100, 2)
		p.Publish(edge, asks(2), time.Now())
		after(30 * time.Second)
		wantCurrent(t, p.Follow(ring()), 2, 100, 400) // In spite of the dead ones.
	})
}
