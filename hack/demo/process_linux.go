// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// childAttributes puts a child into a group of its own, and ends it with the demo however that ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// resident returns how much memory of a process is resident, in bytes; 0 where that is not known.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	var kibibytes int64
	for line := range bytes.Lines(text) {
		if _, err := fmt.Sscanf(string(line), "VmRSS: %d kB", &kibibytes); err == nil {
			return kibibytes << 10
		}
	}
	return 0
}
