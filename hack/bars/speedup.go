// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"runtime"
	"slices"
	"time"
)

// way is one of two ways of doing the same work.
type way struct {
	// warm brings back what the other way has driven out of the caches; nil where the work is long enough not to mind.
	warm func() error
	work func() error
}

// speedup returns how many times as fast the first way is as the second. They take turns, and the median of the rounds'
// ratios is the answer: a change of the machine's pace falls on both sides of a ratio, and an interruption spoils one
// round only.
func speedup(rounds int, first, second way) (float64, error) {
	ratios := make([]float64, rounds)
	for round := range ratios {
		a, err := first.time()
		if err != nil {
			return 0, err
		}
		b, err := second.time()
		if err != nil {
			return 0, err
		}
		ratios[round] = float64(b) / float64(a)
	}
	slices.Sort(ratios)
	return ratios[rounds/2], nil
}

// time returns how long the work takes.
func (w way) time() (time.Duration, error) {
	if w.warm != nil {
		if err := w.warm(); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err := w.work()
	return time.Since(start), err
}

// quickest returns the least time that some rounds of the same work took, with one processor.
func quickest(rounds int, work func() error) (time.Duration, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	least := time.Duration(math.MaxInt64)
	for range rounds {
		took, err := way{work: work}.time()
		if err != nil {
			return 0, err
		}
		least = min(least, took)
	}
	return least, nil
}
