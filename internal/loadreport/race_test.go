// SPDX-License-Identifier: Apache-2.0

//go:build race

package loadreport

// raceDetector says that memory is not what it is without, and that a million of anything takes minutes.
const raceDetector = true
