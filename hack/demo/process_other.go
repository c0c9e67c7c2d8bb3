// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "syscall"

// childAttributes puts a child into a group of its own.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
