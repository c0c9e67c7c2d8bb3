// SPDX-License-Identifier: Apache-2.0

//go:build race

package agent_test

// raceDetector says that this program, which is also the agents of the tests, has the race detector: it is several times as slow and
// takes several times the memory.
const raceDetector = true
