// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ringwright/ringwright/internal/balance"
)

const (
	// balancedEndpoints is how many endpoints the controller of weights must be able to deal with in one update.
	balancedEndpoints = 100_000
	balanceRounds     = 60
)

// balanceMilliseconds returns how long the quickest of some control updates took, each with a report of every endpoint, in the order
// in which the store of reports gives them.
func balanceMilliseconds() (float64, error) {
	config, found := balance.Profile(balance.ProfileBalanced)
	if !found {
		return 0, fmt.Errorf("there is no profile %s", balance.ProfileBalanced)
	}
	chance := rand.New(rand.NewPCG(1, 2))
	in := balance.Input{Now: time.Unix(1_800_000_000, 0)}
	for range balancedEndpoints {
		id := fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", chance.Uint32(), chance.Uint32()>>16, chance.Uint32()>>20, chance.Uint32()>>20, chance.Uint64()>>16)
		in.Endpoints = append(in.Endpoints, balance.Endpoint{ID: id, Ready: true})
	}
	slices.SortFunc(in.Endpoints, func(a, b balance.Endpoint) int { return strings.Compare(a.ID, b.ID) })
	var state balance.State
	report := func() {
		start := in.Now
		in.Now, in.Reports = start.Add(config.Interval), nil
		for _, e := range in.Endpoints {
			load := 0.5 * (1 + 0.01*chance.NormFloat64())
			in.Reports = append(in.Reports, balance.Report{
				Endpoint: e.ID, Start: start, End: in.Now, CPU: load, InFlight: 8 * load, Requests: 6000, Errors: 1,
			})
		}
	}
	for range 5 { // So that there is something to predict from, and an estimate of the noise.
		report()
		state, _ = balance.Update(config, state, in)
		state = state.Publish(in.Now, state.Weights())
	}
	report()
	runtime.GC()
	var result balance.Result
	took, err := quickest(balanceRounds, func() error {
		_, result = balance.Update(config, state, in)
		return nil
	})
	if err == nil && (result.Reporting != balancedEndpoints || result.Skipped != balance.SkipNone) {
		return 0, fmt.Errorf("%d endpoints report, skipped %q: not what was to be measured", result.Reporting, result.Skipped)
	}
	return took.Seconds() * 1000, err
}
