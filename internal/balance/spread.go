// SPDX-License-Identifier: Apache-2.0

package balance

// limited is a weight with its limits.
type limited struct {
	weight, low, high float64
	index             int32
	// held says that the weight is at a limit, which the others make up for.
	held bool
}

// spread multiplies the weights by a common factor, each kept within its limits, so that their sum is the wanted one, which
// must be one that the limits allow. Where they do not, all are at their limits on that side.
//
// Weights outside their limits are brought to them first. Then those that are not held are scaled to make up for the rest, and
// those that leave their limits by it are held, which a few rounds settle: in each at least one more is held. Only those are
// held that are outside on the side of the error, as in water filling: those on the other side may come back.
func spread(list []limited, sum float64) {
	for range 64 { // Two or three are usual. The bound is for limits that contradict each other.
		free, held := 0.0, 0.0
		for i := range list {
			if list[i].held {
				held += list[i].weight
			} else {
				free += list[i].weight
			}
		}
		if free <= 0 {
			return
		}
		if !scale(list, max(sum-held, 0)/free) {
			return
		}
	}
}

// scale multiplies the weights that are not held, and says whether it had to hold some.
func scale(list []limited, factor float64) bool {
	over, under := 0.0, 0.0
	for i := range list {
		if l := &list[i]; !l.held {
			l.weight *= factor
			over += max(l.weight-l.high, 0)
			under += max(l.low-l.weight, 0)
		}
	}
	if over == 0 && under == 0 {
		return false
	}
	for i := range list {
		l := &list[i]
		switch {
		case l.held:
		case over >= under && l.weight > l.high:
			l.weight, l.held = l.high, true
		case under >= over && l.weight < l.low:
			l.weight, l.held = l.low, true
		}
	}
	return true
}
