// SPDX-License-Identifier: Apache-2.0

package sixbyte

import (
	"syscall"
	"unsafe"
)

// allocate returns an empty ring with room for n points, on huge pages, as the packed ring has them.
func allocate(n int) Ring {
	const page, small = 4096, 4 << 20
	points := make(Ring, n)
	if bytes := n * 6; bytes >= small {
		memory := unsafe.Slice(&points[0][0], bytes)
		skip := -uintptr(unsafe.Pointer(&points[0])) % page
		_ = syscall.Madvise(memory[skip:skip+(uintptr(bytes)-skip)/page*page], syscall.MADV_HUGEPAGE) // A wish, no more.
	}
	return points[:0]
}
