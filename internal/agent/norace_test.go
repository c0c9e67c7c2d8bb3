// SPDX-License-Identifier: Apache-2.0

//go:build !race

package agent_test

const raceDetector = false
