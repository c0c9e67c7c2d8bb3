// SPDX-License-Identifier: Apache-2.0

package main

// claims returns every claim, in the order in which they are printed.
func claims() []claim {
	f := newFleet()
	return []claim{
		{"snapshot of 2048×160, bytes a point, at most", 3.9, atMost, f.bytesPerPoint},
		{"lookup in 2048×160, times as fast as a binary search over 6-byte points, at least", 3, atLeast, f.lookupRatio},
		{"build of 2048×160, times as fast as slices.SortFunc over 6-byte points, at least", 3, atLeast, f.buildRatio},
		{"allocations of Ring.Owner, at most", 0, atMost, f.ownerAllocations},
		{"allocations of View.Owner, at most", 0, atMost, f.viewOwnerAllocations},
		{"allocations of View.AppendOwners of 3, at most", 0, atMost, f.appendOwnersAllocations},
		{"Open, bytes allocated for each byte of input, at most", 4, atMost, openAllocation},
	}
}
