// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
)

// column is an array of unsigned numbers of 1, 2 or 4 bytes; of none where there is nothing to tell.
type column struct {
	data  []byte
	width uint8
}

// columnWidth returns the fewest bytes that hold the largest of values.
func columnWidth(largest uint32) uint8 {
	switch {
	case largest < 1<<8:
		return 1
	case largest < 1<<16:
		return 2
	default:
		return 4
	}
}

func (c column) at(i int) uint32 {
	switch c.width {
	case 1:
		return uint32(c.data[i])
	case 2:
		return uint32(binary.LittleEndian.Uint16(c.data[2*i:]))
	case 4:
		return binary.LittleEndian.Uint32(c.data[4*i:])
	default:
		return 0
	}
}

// appendColumn appends values to dst, each in width bytes.
func appendColumn(dst []byte, width uint8, values []uint32) []byte {
	for _, v := range values {
		switch width {
		case 1:
			dst = append(dst, byte(v))
		case 2:
			dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
		case 4:
			dst = binary.LittleEndian.AppendUint32(dst, v)
		}
	}
	return dst
}

// texts is a list of strings: one blob and a column of where each ends.
type texts struct {
	blob string
	ends column
}

func (t texts) at(i int) string {
	start := uint32(0)
	if i > 0 {
		start = t.ends.at(i - 1)
	}
	return t.blob[start:t.ends.at(i)]
}

// textEnds returns the ends column and the blob of a list of strings.
func textEnds(list []string) (ends []uint32, blob []byte) {
	ends = make([]uint32, 0, len(list))
	for _, s := range list {
		blob = append(blob, s...)
		ends = append(ends, uint32(len(blob)))
	}
	return ends, blob
}

// backendTable is the backends section of a snapshot.
type backendTable struct {
	n       int
	weights column
	ids     texts
	zones   texts
	zoneOf  column // 0: no zone; k: zones[k-1]
}

func (b *backendTable) id(i int) string     { return b.ids.at(i) }
func (b *backendTable) weight(i int) uint32 { return b.weights.at(i) }

func (b *backendTable) zoneCount() int {
	return len(b.zones.ends.data) / int(max(b.zones.ends.width, 1))
}

func (b *backendTable) zone(i int) string {
	k := b.zoneOf.at(i)
	if k == 0 {
		return ""
	}
	return b.zones.at(int(k) - 1)
}
