// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"syscall"
	"unsafe"
)

// hugeBytes is from what size on memory is worth huge pages: many times what the processor's table of pages reaches.
const hugeBytes = 4 << 20

// preferHuge asks for huge pages behind memory that has not been written yet. A look-up in a ring of many megabytes waits
// longer for the table of small pages than for the memory. It is a wish: where it is not granted, nothing else changes.
func preferHuge(b []byte) {
	if len(b) < hugeBytes {
		return
	}
	page := uintptr(syscall.Getpagesize())
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % page
	inner := b[skip:]
	_ = syscall.Madvise(inner[:uintptr(len(inner))/page*page], syscall.MADV_HUGEPAGE)
}
