// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sixbyte

// allocate returns an empty ring with room for n points.
func allocate(n int) Ring { return make(Ring, 0, n) }
