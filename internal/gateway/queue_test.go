// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/internal/loadreport"
)

// TestQueue compares with a plain slice.
func TestQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const limit = 20
	q, want, next := &queue{}, []int(nil), 0
	var taken []loadreport.Report
	for range 10_000 {
		switch random.IntN(4) {
		case 0:
			taken = q.take(random.IntN(limit))
			n := len(taken)
			if d := cmp.Diff(append([]int(nil), want[:n]...), append([]int(nil), numbers(taken)...)); d != "" {
				t.Fatal(d)
			}
			want = want[n:]
		case 1:
			if len(taken) > 0 {
				want = append(numbers(taken), want...)
				dropped := q.pushFront(taken, limit)
				if over := max(len(want)-limit, 0); over != len(dropped) {
					t.Fatalf("%d dropped, want %d", len(dropped), over)
				}
				want = want[max(len(want)-limit, 0):]
				taken = nil
			}
		default:
			_, full := q.push(numbered("p", next, next+1)[0], limit)
			want = append(want, next)
			next++
			if full != (len(want) > limit) {
				t.Fatal("it is full, or not")
			}
			want = want[max(len(want)-limit, 0):]
		}
		if q.len() != len(want) || cap(q.reports) > 8*limit {
			t.Fatalf("%d wait, want %d; room for %d", q.len(), len(want), cap(q.reports))
		}
	}
}

// TestQueueThatNobodyTakesFrom has room for what waits, and not for all that ever did.
func TestQueueThatNobodyTakesFrom(t *testing.T) {
	q := &queue{}
	for i := range 10_000 {
		q.push(numbered("p", i, i+1)[0], 20)
	}
	if q.len() != 20 || cap(q.reports) > 100 {
		t.Fatalf("%d wait, room for %d", q.len(), cap(q.reports))
	}
	if d := cmp.Diff(9980, numbers(q.take(1))[0]); d != "" {
		t.Fatal(d)
	}
}
