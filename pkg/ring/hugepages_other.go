// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ring

// preferHuge does nothing where huge pages cannot be asked for.
func preferHuge([]byte) {}
