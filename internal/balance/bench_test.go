// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// large returns a State of n endpoints that were published a few times, and an input with a report of each, with IDs as UIDs
// are.
func large(n int) (Config, State, Input) {
	c, _ := Profile(ProfileBalanced)
	chance := rand.New(rand.NewPCG(1, 2))
	in := Input{Now: epoch}
	for range n {
		id := fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", chance.Uint32(), chance.Uint32()>>16, chance.Uint32()>>20, chance.Uint32()>>20, chance.Uint64()>>16)
		in.Endpoints = append(in.Endpoints, Endpoint{id, true})
	}
	in.Endpoints = sortedEndpoints(in.Endpoints, nil)
	var s State
	for range 6 {
		in = reports(chance, in)
		s, _ = Update(c, s, in)
		s = s.Publish(in.Now, s.Weights())
	}
	return c, s, reports(chance, in)
}

// reports returns the next input.
func reports(chance *rand.Rand, in Input) Input {
	next := Input{Now: in.Now.Add(10 * time.Second), Endpoints: in.Endpoints}
	for _, e := range in.Endpoints {
		load := 0.5 * (1 + 0.01*chance.NormFloat64())
		next.Reports = append(next.Reports, Report{Endpoint: e.ID, Start: in.Now, End: next.Now, CPU: load, InFlight: 8 * load, Requests: 6000, Errors: 1})
	}
	return next
}

// BenchmarkUpdate is one update of 100,000 endpoints on one core, from sorted input and from input in any order.
func BenchmarkUpdate(b *testing.B) {
	c, s, in := large(100_000)
	mixed := Input{in.Now, slices.Clone(in.Endpoints), slices.Clone(in.Reports)}
	rand.Shuffle(len(mixed.Endpoints), func(i, j int) {
		mixed.Endpoints[i], mixed.Endpoints[j] = mixed.Endpoints[j], mixed.Endpoints[i]
	})
	rand.Shuffle(len(mixed.Reports), func(i, j int) {
		mixed.Reports[i], mixed.Reports[j] = mixed.Reports[j], mixed.Reports[i]
	})
	for name, in := range map[string]Input{"sorted": in, "mixed": mixed} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, r := Update(c, s, in); r.Reporting != 100_000 || r.Skipped != SkipNone {
					b.Fatalf("%+v", r)
				}
			}
		})
	}
}

func BenchmarkPublish(b *testing.B) {
	_, s, in := large(100_000)
	weights := s.Weights()
	b.ReportAllocs()
	for b.Loop() {
		s.Publish(in.Now, weights)
	}
}
