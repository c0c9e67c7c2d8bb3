// SPDX-License-Identifier: Apache-2.0

package gate

import "github.com/ringwright/ringwright/internal/consumer"

// Sample is what a consumer of a ring said last of what it counted.
type Sample = consumer.Sample

// RingCounts are the counters of one ring, from the start of the process.
type RingCounts = consumer.RingCounts
