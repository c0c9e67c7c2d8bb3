// SPDX-License-Identifier: Apache-2.0

package main

import "runtime"

// hashLimit is 1 where the standard library has an instruction for it.
var hashLimit = map[bool]float64{true: 1.3, false: 0.9}[runtime.GOARCH == "amd64"]

// claims returns every claim, in the order in which they are printed.
func claims() []claim {
	f := newFleet()
	return []claim{
		{exact, "2048×40, bytes a point, at most", 3.9, atMost, pointsSectionBytes(40)},
		{exact, "2048×160, bytes a point, at most", 3.65, atMost, pointsSectionBytes(160)},
		{exact, "2048×10,000, bytes a point, at most", 2.9, atMost, pointsSectionBytes(10_000)},
		{timed, "lookup in 2048×40, times as fast as a binary search over 6-byte points, at least", 5, atLeast, lookupRatio(40)},
		{timed, "lookup in 2048×160, likewise, at least", 5, atLeast, lookupRatio(160)},
		{timed, "lookup in 2048×10,000, likewise, at least", 4, atLeast, lookupRatio(10_000)},
		{timed, "hash of a key of 32 bytes, times as fast as crc32.ChecksumIEEE, at least", hashLimit, atLeast, hashRatio},
		{timed, "build of 2048×160, times as fast as slices.SortFunc over 6-byte points, at least", 5, atLeast, f.buildRatio},
		{exact, "2048×160 with the views of all 32 combinations of 5 features: part of 32 rings of 6-byte points, at most", 1.0 / 40, atMost, viewsMemory},
		{timed, "lookup in a view of 95 % of the backends, times as slow as in a ring of them alone, at most", 1.3, atMost, viewSlowdown(-20)},
		{timed, "lookup in a view of a half, likewise, at most", 2, atMost, viewSlowdown(2)},
		{timed, "lookup in a view of an eighth, likewise, at most", 2.5, atMost, viewSlowdown(8)},
		{timed, "movement between two rings of 2048×160, milliseconds at the quickest, at most", 10, atMost, movementMilliseconds},
		{timed, "the same, times as slow as a plain merge of 6-byte points, at most", 3, atMost, movementSlowdown},
		{exact, "allocations of Ring.Owner, at most", 0, atMost, f.ownerAllocations},
		{exact, "allocations of View.Owner, at most", 0, atMost, f.viewOwnerAllocations},
		{exact, "allocations of View.AppendOwners of 3, at most", 0, atMost, f.appendOwnersAllocations},
		{exact, "V3, 10 backends of weights 1..10, 40 points: max/avg of the worst of 32 views, at most", 1.01, atMost, worstBalance(10)},
		{exact, "V3, 100 backends, likewise, at most", 1.01, atMost, worstBalance(100)},
		{exact, "V3, 2048 backends, likewise, at most", 1.01, atMost, worstBalance(2048)},
		{exact, "V3, one joins 100 backends of 160 points: part of the keys that moves, at most", 1.5 / 101, atMost, joinMovement},
		{timed, "V3, 2048×40 with 32 views: seconds to build on one processor at the quickest, at most", 1, atMost, trimSeconds},
		{exact, "V3, 2048×40 with 32 views: part of a ConfigMap, at most", 2.0 / 3, atMost, trimmedBytes},
		{timed, "client, 2048×160, two goroutines: key of 32 bytes to backend, times as slow as with the bare ring, at most", 1.3, atMost, pickSlowdown},
		{exact, "allocations of Client.Pick, with a split and a feature, at most", 0, atMost, pickAllocations},
		{timed, "the same while the state is replaced every millisecond, times as slow as while it is not, at most", 1.1, atMost, replacedSlowdown},
		{timed, "swap of a snapshot of 1 MiB, milliseconds from the write to the first answer at the 99th percentile, at most", 50, atMost, swapMilliseconds},
		{exact, "load of it from a volume: bytes allocated for each byte of it, at most", 0.2, atMost, loadAllocation},
		{exact, "Open, bytes allocated for each byte of input, at most", 4, atMost, openAllocation},
		{timed, "agent: lookups over HTTP, part of the throughput of a bare handler that answers the same bytes, at least", 0.8, atLeast, agentThroughput},
		{timed, "agent: lookups a second in batches of 100 keys, times as many as one by one, at least", 20, atLeast, agentBatches},
		{exact, "agent: MiB of resident memory with a snapshot of 1 MiB, at most", 30, atMost, agentMemory},
		{timed, "reverse proxy, answers of 100 bytes: throughput as a part of httputil.ReverseProxy's, at least", 0.9, atLeast, proxyRatio(100)},
		{timed, "reverse proxy, answers of 1 MiB, likewise, at least", 0.9, atLeast, proxyRatio(1 << 20)},
		{timed, "migration, 3 rings, 330 datacenters: milliseconds of processor time for a look at the 99th percentile, at most", 50, atMost, migrationMilliseconds},
		{exact, "the same: KiB of its status, at most", 256, atMost, migrationStatusKiB},
		{exact, "the same: KiB of routing.json, at most", 64, atMost, migrationRoutingKiB},
		{exact, "the same: writes in 100 looks at which nothing has changed, at most", 0, atMost, migrationIdleWrites},
		{timed, "load-aware weights, 100,000 endpoints: milliseconds of a control update at the quickest, at most", 20, atMost, balanceMilliseconds},
		{timed, "xDS, 1,000 clients: seconds until the last has new weights of 1,000 endpoints, at most", 2, atMost, xdsSeconds(false)},
		{timed, "the same incrementally, at most", 2, atMost, xdsSeconds(true)},
	}
}
