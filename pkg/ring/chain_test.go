// SPDX-License-Identifier: Apache-2.0

package ring

import "testing"

// TestTieRank pins the mix that decides ties of V3; the value for 1 is in docs/snapshot-format.md.
func TestTieRank(t *testing.T) {
	for _, row := range []struct{ hash, sum, want uint32 }{{1, 0, 0x514e28b7}, {0, 1, 0x514e28b7}, {7, 7, 0}, {0xffffffff, 0, 0x81f16f39}} {
		if got := tieRank(row.hash, row.sum); got != row.want {
			t.Errorf("tieRank(%#x, %#x) = %#x, want %#x", row.hash, row.sum, got, row.want)
		}
	}
}
