// SPDX-License-Identifier: Apache-2.0

package nginxconf_test

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// model is what NGINX makes of an upstream block with "hash … consistent", in a few lines that have nothing in common with
// package ring: servers have 160 points for each unit of weight, sorted by hash and then by their place in the file; of equal
// ones the first is kept; a request takes the first point from its hash on whose server is not down.
type model struct {
	points []modelPoint
	down   map[string]bool
	// tied are the points that were kept where there were others with the same hash.
	tied []modelPoint
}

type modelPoint struct {
	hash   uint32
	server string
}

var serverForm = regexp.MustCompile(`(?m)^    server (\S+) weight=(\d+)( down)?;$`)

// readModel reads a file with one block.
func readModel(t *testing.T, content []byte) *model {
	t.Helper()
	m := &model{down: map[string]bool{}}
	for _, match := range serverForm.FindAllStringSubmatch(string(content), -1) {
		weight, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := strings.Cut(match[1], ":")
		base, previous := crc32.ChecksumIEEE([]byte(host+"\x00"+port)), []byte{0, 0, 0, 0}
		for range 160 * weight {
			hash := crc32.Update(base, crc32.IEEETable, previous)
			binary.LittleEndian.PutUint32(previous, hash)
			m.points = append(m.points, modelPoint{hash, match[1]})
		}
		m.down[match[1]] = match[3] != ""
	}
	slices.SortStableFunc(m.points, func(a, b modelPoint) int { return cmp.Compare(a.hash, b.hash) })
	kept := m.points[:0]
	for _, p := range m.points {
		if n := len(kept); n > 0 && kept[n-1].hash == p.hash {
			m.tied = append(m.tied, kept[n-1])
			continue
		}
		kept = append(kept, p)
	}
	m.points = kept
	return m
}

func (m *model) owner(hash uint32) string {
	at := sort.Search(len(m.points), func(i int) bool { return m.points[i].hash >= hash })
	for ; m.down[m.points[at%len(m.points)].server]; at++ {
	}
	return m.points[at%len(m.points)].server
}
