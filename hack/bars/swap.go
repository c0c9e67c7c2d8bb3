// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

const (
	// swaps is how many swaps are timed: two of them are beyond the 99th percentile.
	swaps = 200
	// loads is how many loads are measured.
	loads = 5
	// replacedRounds is how many rounds there are of lookups beside replacements, and replacedLookups how long one is: long
	// enough for many replacements.
	replacedRounds, replacedLookups = 15, 400_000
)

// replacedSlowdown compares lookups while the state is replaced every millisecond with lookups while it is not.
func replacedSlowdown() (float64, error) {
	m, err := newMounted()
	if err != nil {
		return 0, err
	}
	defer m.remove()
	c, err := m.open(lab)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	lookUps := func() error {
		return lookUp(replacedLookups, func(key []byte) (string, error) {
			d, err := c.Pick(key)
			if err != nil {
				return "", err
			}
			return d.ID(), nil
		})
	}
	replaced := way{work: func() error {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
					_ = c.SetForce(ringclient.ForceNone) // It cannot fail, and the state that it makes is another one that says the same.
				}
			}
		}()
		err := lookUps()
		close(stop)
		<-stopped
		return err
	}}
	return speedup(replacedRounds, way{work: lookUps}, replaced)
}

// swapMilliseconds returns the 99th percentile of the time from the beginning of a write, as kubelet does it, to the first answer of the
// new ring. The slots change places each time, so that a snapshot of 1.1 MiB is read, verified and opened.
func swapMilliseconds() (float64, error) {
	m, err := newMounted()
	if err != nil {
		return 0, err
	}
	defer m.remove()
	c, err := m.openAlone()
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	took := make([]time.Duration, swaps)
	for i := range took {
		m.stable, m.candidate = m.candidate, m.stable
		start := time.Now()
		if err := m.publishStable(); err != nil {
			return 0, err
		}
		if err := waitFor(c, m.generation, start); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[swaps*99/100-1].Seconds() * 1000, nil
}

// waitFor returns when a client answers from a generation. It looks often and leaves the processor to the client in between.
func waitFor(c *ringclient.Client, generation int64, start time.Time) error {
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for {
		d, err := c.Pick([]byte("key"))
		switch {
		case err != nil:
			return err
		case d.Generation() == generation:
			return nil
		case time.Since(start) > 10*time.Second:
			return fmt.Errorf("generation %d is still answered after 10 s, not %d", d.Generation(), generation)
		}
		<-tick.C
	}
}

// loadAllocation returns how much opening a mounted ring allocates for each byte of its snapshot: the least of some times, because what
// else runs in this process allocates as well.
func loadAllocation() (float64, error) {
	m, err := newMounted()
	if err != nil {
		return 0, err
	}
	defer m.remove()
	if err := m.publishStable(); err != nil {
		return 0, err
	}
	least := math.Inf(1)
	for range loads {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := m.open("")
		if err != nil {
			return 0, err
		}
		runtime.ReadMemStats(&after)
		_ = c.Close() // It always returns nil.
		least = min(least, float64(after.TotalAlloc-before.TotalAlloc)/float64(len(m.stable.Snapshot())))
	}
	return least, nil
}
