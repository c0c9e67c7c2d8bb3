// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"fmt"
	"runtime"
)

// Section is a part of a snapshot: what it is for, and how many bytes it takes.
type Section struct {
	// Name is "header" for everything that every snapshot has, "backends", "features", "views", "points" or "fingerprint", or "section" and a number
	// for one of a kind that this version does not know.
	Name string
	// Bytes is the length of the part, padding included.
	Bytes int
}

// Sections returns the parts of the snapshot in the order in which they stand; the header comes first, and its length
// includes the section table and the trailer. The lengths add up to that of the snapshot. The caller owns the slice.
func (r *Ring) Sections() []Section {
	defer runtime.KeepAlive(r)
	count := int(binary.LittleEndian.Uint32(r.snapshot[atSections:])) // Open has checked the table.
	list := make([]Section, 0, 1+count)
	list = append(list, Section{Name: "header", Bytes: headerBytes + tableEntry*count + trailerBytes})
	for k := range count {
		row := r.snapshot[headerBytes+tableEntry*k:]
		kind, length := binary.LittleEndian.Uint32(row), binary.LittleEndian.Uint64(row[16:])
		list = append(list, Section{Name: sectionName(kind), Bytes: align(int(length))})
	}
	return list
}

func sectionName(kind uint32) string {
	switch kind {
	case kindBackends:
		return "backends"
	case kindFeatures:
		return "features"
	case kindViews:
		return "views"
	case kindPoints:
		return "points"
	case kindFingerprint:
		return "fingerprint"
	default:
		return fmt.Sprintf("section %d", kind)
	}
}

// PointCounts returns the number of points of every backend of the ring in this view, those included that lose a tie; it
// is zero for backends that are no members. The caller owns the slice. Linear in the number of points of the ring.
func (v *View) PointCounts() []int {
	counts, _ := v.countPoints()
	return counts
}
