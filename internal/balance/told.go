// SPDX-License-Identifier: Apache-2.0

package balance

import "unsafe"

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

// sameString says that strings are the same without looking at them; false says nothing.
func sameString(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
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
			j++
		}
	}
	return found
}

// mean returns the mean weight that clients were told of endpoint i from start to end; 0 if they were not told of it. Without any
// publication it is the weight 1, because that is what clients do who were told nothing.
func (t *toldWeights) mean(i int, start, end Instant) float64 {
	if len(t.published) == 0 {
		return 1
	}
	start = min(start, end-1)
	sum, until := 0.0, end
	for k := len(t.published) - 1; k >= 0 && until > start; k-- {
		from := max(t.published[k].At, start)
		if k == 0 {
			from = start // The oldest publication is taken to have been there from ever on.
		}
		if from >= until {
			continue
		}
		if at := t.positions[k][i]; at >= 0 {
			if until-from == end-start {
				return t.published[k].Weights[at]
			}
			sum += t.published[k].Weights[at] * float64(until-from)
		}
		until = from
	}
	return sum / float64(end-start)
}
