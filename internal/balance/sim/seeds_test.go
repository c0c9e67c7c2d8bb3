// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim

// seeds is how many runs of chance a claim is about.
const seeds = 20
