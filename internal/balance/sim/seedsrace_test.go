// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim

// seeds is smaller with the race detector, which makes a run ten times as long: the claims are checked without it, which
// make test does as well, and so is what parts of the controller are for, which is about the worst of many runs.
const seeds = 4
