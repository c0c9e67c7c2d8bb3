// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"sync/atomic"
	"unsafe"
)

const (
	// stripeBits gives the number of stripes of a counter, a power of two: more than the processors that usually count at once.
	stripeBits = 4
	// cacheLine is how far the stripes are apart, in bytes: processors fetch lines of 64 bytes in pairs.
	cacheLine = 128
)

// counter counts events of many goroutines. One number that all of them write would be passed from processor to processor
// at every event, which takes longer than a lookup; so there are several, and who counts takes one by where its stack is.
type counter struct {
	stripes [1 << stripeBits]stripe
}

type stripe struct {
	atomic.Uint64
	_ [cacheLine - 8]byte
}

// add counts one event.
func (c *counter) add() {
	var local byte
	// A goroutine's stack has at least 2 KiB. The address is hashed and never followed.
	place := uint32(uintptr(unsafe.Pointer(&local))>>11) * 0x9e3779b1
	c.stripes[place>>(32-stripeBits)].Add(1)
}

// load returns the events counted so far.
func (c *counter) load() uint64 {
	n := uint64(0)
	for i := range c.stripes {
		n += c.stripes[i].Load()
	}
	return n
}
