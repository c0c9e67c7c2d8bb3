// SPDX-License-Identifier: Apache-2.0

// Package balance is the controller of load-aware weights: from what endpoints report about their load and from the weights
// that clients were told, it decides the next weights, so that every endpoint is used as much as the average one.
//
// It is pure: time and reports are values, a [State] goes in and a [State] comes out. The same inputs, in whatever order, give
// the same bytes. Weights have a mean of 1 over the endpoints that are ready, are positive and finite for any input, and stay
// within the limits of the [Config] (see [Update] for the one exception).
//
// The loop of a caller is
//
//	state, result = balance.Update(config, state, input)     // every Config.Interval
//	weights := balance.Blend(other, state.Weights(), percent)
//	state = state.Publish(now, weights)                      // whenever clients are told weights, also others than the state's
//
// What it does not do: it does not know zones (a zone is a State of its own), it does not decide when weights are published,
// and it stores nothing.
package balance
