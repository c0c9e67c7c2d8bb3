// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"time"
)

// Instant is a time in nanoseconds since 1970; 0 is none. A State has many: they take a third of the room of a time.Time and have no
// pointer that a garbage collector must follow.
type Instant int64

// InstantOf returns the Instant of a time, 0 for what is before 1970, and the last there is for what is after 2262.
func InstantOf(t time.Time) Instant {
	switch seconds := t.Unix(); {
	case seconds < 0:
		return 0
	case seconds > math.MaxInt64/int64(time.Second)-1:
		return math.MaxInt64
	}
	return Instant(t.UnixNano())
}

// Time returns the time of an Instant, in UTC; the zero time for none.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i)).UTC()
}

// add returns the Instant a duration later, kept within what there is.
func (i Instant) add(d time.Duration) Instant {
	switch sum := i + Instant(d); {
	case d > 0 && sum < i:
		return math.MaxInt64
	case sum < 0:
		return 0
	default:
		return sum
	}
}

// since returns the seconds from another Instant on.
func (i Instant) since(other Instant) float64 { return float64(i-other) / float64(time.Second) }
