// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim

// seeds is smaller with the race detector, which makes a run ten times as long: the claims are checked without it.
const seeds = 4
