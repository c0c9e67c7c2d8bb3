// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// childAttributes puts a child into a group of its own, and ends it with the demo however that ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
