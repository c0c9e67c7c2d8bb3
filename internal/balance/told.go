// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"time"
	"unsafe"
)

// toldWeights finds what clients were told of an endpoint at a time.
type toldWeights struct {
	published []Publication
	// positions says where the endpoints are in a publication, -1 for those that are not. It is shared by publications of the same
	// endpoints.
	positions [][]int32
}

func newToldWeights(published []Publication, list []EndpointState) toldWeights {
	t := toldWeights{published: published, positions: make([][]int32, len(published))}
	for k, p := range published {
		if k > 0 && sameSlice(p.IDs, published[k-1].IDs) {
			t.positions[k] = t.positions[k-1]
			continue
		}
		t.positions[k] = positions(p.IDs, list)
	}
	return t
}

func sameSlice(a, b []string) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

func positions(ids []string, list []EndpointState) []int32 {
	found, j := make([]int32, len(list)), 0
	for i := range list {
		id := list[i].ID
		for j < len(ids) && ids[j] != id && ids[j] < id {
			j++
		}
		found[i] = -1
		if j < len(ids) && ids[j] == id {
			found[i] = int32(j)
		}
	}
	return found
}

// mean returns the mean weight that clients were told of endpoint i from start to end; 0 if they were not told of it. Without any
// publication it is the weight 1, because that is what clients do who were told nothing.
func (t *toldWeights) mean(i int, start, end time.Time) float64 {
	if len(t.published) == 0 {
		return 1
	}
	if !start.Before(end) {
		start = end.Add(-time.Nanosecond)
	}
	sum, until := 0.0, end
	for k := len(t.published) - 1; k >= 0 && until.After(start); k-- {
		from := t.published[k].At
		if k == 0 || from.Before(start) {
			from = start // The oldest publication is taken to have been there from ever on.
		}
		if !from.Before(until) {
			continue
		}
		if at := t.positions[k][i]; at >= 0 {
			sum += t.published[k].Weights[at] * until.Sub(from).Seconds()
		}
		until = from
	}
	return sum / end.Sub(start).Seconds()
}
