// SPDX-License-Identifier: Apache-2.0

// Package gate measures what judges a migration: by queries of Prometheus, by the counters of the agents, or by a condition of any
// object. What a result does is for package migration; how to write a gate is in docs/gates.md.
//
// What it guarantees of the results that [Runner.Follow] returns:
//
//   - each is about the step, datacenters and rings that the caller asks about, and about a time in which the step was in effect;
//   - none is a Pass or a Fail on a value that is not a finite number, that several series give, or that is too old;
//   - the time of each is that of its data by the clock of this process, in whole seconds, and never ahead of it;
//   - its text has at most [MaxDetailBytes] bytes, is printable, and has none of the credentials that were used.
//
// It measures while [Runner.Start] runs: each gate at its interval, one at a time, and [MaxMeasuring] of all together. What a
// Prometheus answers has a limit in bytes and in time; one that fails is asked less and less often, for all migrations together.
package gate
