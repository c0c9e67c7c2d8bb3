// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"sync"
	"time"
)

// A ring whose pods take long to answer, or never do, must not hold up the others. Each ring has a share of the requests that may
// be on their way. It begins small, each quick answer adds to it and each slow one takes from it, so that a ring whose pods answer
// has its full share within moments, and one whose pods hang has next to nothing, whatever it does.
const (
	// MaxAskingOfSlow is how many requests there are together for rings that have less than their full share. The rest of MaxAsking
	// is for those whose pods answer.
	MaxAskingOfSlow = MaxAsking - MaxAskingOfRing
	// calm is how many of those there can be without anybody being held to his share: nobody is in need of the places.
	calm = MaxAskingOfRing
	// firstShare is the share of a ring of which nothing is known.
	firstShare = 4
	// slowAfter is what is slow, whether it ends with an answer or not, and slowCost how many quick answers make up for it.
	slowAfter = 250 * time.Millisecond
	slowCost  = 4
)

// crowd counts the requests of rings that have less than their full share. It is safe for concurrent use.
type crowd struct {
	mu   sync.Mutex
	slow int
}

// admit says whether a ring with so many requests on their way may have one more, and whether that counts as slow; leave must be
// called for such a one when it has ended.
func (c *crowd) admit(asking, share int) (slow, admitted bool) {
	if asking >= MaxAskingOfRing || share == MaxAskingOfRing {
		return false, asking < MaxAskingOfRing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slow >= MaxAskingOfSlow || c.slow >= calm && asking >= share {
		return true, false
	}
	c.slow++
	return true, true
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow--
}

// shareAfter returns the share of a ring after a request that took so long.
func shareAfter(share int, took time.Duration) int {
	if took < slowAfter {
		return min(share+1, MaxAskingOfRing)
	}
	return max(share-slowCost, 1)
}
