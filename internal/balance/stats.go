// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"slices"
)

// quantile returns the value of which part of the values are at most as large, of which there must be some. It changes
// their order.
func quantile(values []float64, part float64) float64 {
	k := min(max(int(math.Ceil(part*float64(len(values))))-1, 0), len(values)-1)
	low, high := 0, len(values)-1
	for low < high {
		pivot := values[low+(high-low)/2]
		i, j := low, high
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return values[k]
		}
	}
	return values[k]
}

// median returns NaN if there are no values. It changes their order.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	low := quantile(values, 0.5)
	if n%2 != 0 {
		return low
	}
	return low + (slices.Min(values[n/2:])-low)/2 // What is behind the quantile is not smaller.
}

// expectedMaximum returns how many standard deviations the largest of n normal values is above their mean, as Blom approximates
// it.
func expectedMaximum(n int) float64 {
	if n < 2 {
		return 0
	}
	p := (float64(n) - 0.375) / (float64(n) + 0.25)
	return math.Sqrt2 * math.Erfinv(2*p-1)
}
