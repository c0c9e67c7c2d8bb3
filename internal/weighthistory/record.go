// SPDX-License-Identifier: Apache-2.0

package weighthistory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// The bounds of a record.
const (
	// MaxWeights is how many endpoints a WeightPolicy has at most.
	MaxWeights = 100_000

	// MinWeight and MaxWeight bound a weight, of which 10000 is the mean.
	MinWeight = 1
	MaxWeight = 1_000_000

	// MaxIDLength is the longest ID of an endpoint.
	MaxIDLength = 253

	// MaxTextLength is the longest holder, reason and ratio.
	MaxTextLength = 1024
)

// Record is what a policy served from one moment on.
type Record struct {
	// Version is that of the WeightSets, at least 0.
	Version int64

	// At is when the weights were computed, to the second.
	At time.Time

	// Holder is the replica of the balancer that computed them.
	Holder string

	// Reason says in a few words why they were recorded.
	Reason string

	// MaxOverAverage is what was measured when they were recorded, such as "1.0120"; empty where nothing was.
	MaxOverAverage string

	// Weights are the weights by the ID of the endpoint, or by its [Digest] where Digested is true. 10000 is the mean.
	Weights map[string]int32

	// Digested says what the keys of Weights are. Encode digests where it has to.
	Digested bool
}

// Weight returns the weight of an endpoint, and whether the record has one.
func (r Record) Weight(id string) (int32, bool) {
	if r.Digested {
		id = Digest(id)
	}
	weight, ok := r.Weights[id]
	return weight, ok
}

// digestBytes makes a collision among MaxWeights endpoints one in 50,000 records, and harmless: one endpoint gets the weight of another.
const digestBytes = 6

// Digest stands for an ID in a large record: 12 hexadecimal digits.
func Digest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:digestBytes])
}

// Name returns the name of the ControllerRevision of a policy's record.
func Name(policy string, revision int64) string {
	return policy + "-weights-" + strconv.FormatInt(revision, 10)
}

// check returns an error that names field, value and limit.
func (r Record) check() error {
	if r.Version < 0 {
		return fmt.Errorf("version must be at least 0; got %d", r.Version)
	}
	if r.At.IsZero() {
		return fmt.Errorf("at must be set")
	}
	for _, text := range []struct{ name, value string }{{"holder", r.Holder}, {"reason", r.Reason}, {"maxOverAverage", r.MaxOverAverage}} {
		if len(text.value) > MaxTextLength {
			return fmt.Errorf("%s must have at most %d bytes; got %d", text.name, MaxTextLength, len(text.value))
		}
	}
	if len(r.Weights) > MaxWeights {
		return fmt.Errorf("weights must have at most %d entries; got %d", MaxWeights, len(r.Weights))
	}
	for id, weight := range r.Weights {
		if id == "" || len(id) > MaxIDLength {
			return fmt.Errorf("weights: an ID must have 1 to %d bytes; got %d", MaxIDLength, len(id))
		}
		if weight < MinWeight || weight > MaxWeight {
			return fmt.Errorf("weights: the weight of %q must be from %d to %d; got %d", id, MinWeight, MaxWeight, weight)
		}
	}
	return nil
}
