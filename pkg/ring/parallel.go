// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls do for every k from 0 to n-1, on as many goroutines as there are processors and at most one for each k. The
// calls must not depend on each other, so that their order makes no difference to a result.
func parallel(n int, do func(k int)) {
	parallelWith(n, func() func(int) { return do })
}

// parallelWith is parallel for calls that need something of their own for each goroutine: worker makes it and returns what is
// called for every k.
func parallelWith(n int, worker func() func(k int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		do := worker()
		for k := range n {
			do(k)
		}
		return
	}
	var wait sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wait.Go(func() {
			do := worker()
			for k := next.Add(1) - 1; k < int64(n); k = next.Add(1) - 1 {
				do(int(k))
			}
		})
	}
	wait.Wait()
}
