// SPDX-License-Identifier: Apache-2.0

//go:build unix

package orcareport

import (
	"syscall"
	"time"
)

// processCPU returns the CPU time of this process.
func processCPU() (time.Duration, bool) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
