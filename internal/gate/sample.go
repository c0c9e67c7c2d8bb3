// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Sample is what a consumer of a ring said last of what it counted.
type Sample struct {
	Pod        string
	UID        types.UID
	Datacenter string
	// Started is when its process started, by its own clock; At is when it answered, by that of the operator.
	Started, At       time.Time
	Stable, Candidate RingCounts
}

// RingCounts are the counters of one ring, from the start of the process. Digest is "" where there is no such ring.
type RingCounts struct {
	Digest                        string
	Selections, Failovers, Errors uint64
}
