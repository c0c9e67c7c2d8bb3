// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"testing"
	"time"
)

// TestBalanceSince: what was busy before the window does not count, and neither does a server that is not there at its end.
func TestBalanceSince(t *testing.T) {
	a, b, gone := &server{}, &server{}, &server{}
	began := time.Now()
	second := int64(serverWorkers) * int64(time.Second)
	from := usage{began, map[*server]int64{a: second, b: 7, gone: 0}}
	to := usage{began.Add(2 * time.Second), map[*server]int64{a: second + second, b: 7 + second/2}}
	got := to.since(from)
	if math.Abs(got.largest-0.5) > 1e-9 || math.Abs(got.mean-0.375) > 1e-9 || math.Abs(got.maxOverAverage()-4.0/3) > 1e-9 {
		t.Errorf("it is %+v, max/avg %v", got, got.maxOverAverage())
	}
	if got.stays() == nil {
		t.Error("that is taken for even")
	}
	if err := (balance{0.5 * steadyBound, 0.5}).stays(); err != nil {
		t.Error(err)
	}
}

// TestNoFailures: those of before are known.
func TestNoFailures(t *testing.T) {
	w := &weightsDemo{}
	w.traffic.failed = []failedRequest{{err: errors.New("one")}, {err: errors.New("two")}}
	if err := w.noFailures(2); err != nil {
		t.Error(err)
	}
	if err := w.noFailures(1); err == nil || err.Error() != "1 requests failed, the first with: two" {
		t.Errorf("it is %v", err)
	}
}

func TestDescribeSpeeds(t *testing.T) {
	if got := describeSpeeds([]float64{1, 1, 1.5, 2, 2}); got != "2 of speed 1, 1 of speed 1.5, 2 of speed 2" {
		t.Error(got)
	}
}
