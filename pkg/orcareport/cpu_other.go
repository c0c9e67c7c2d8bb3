// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package orcareport

import "time"

// processCPU is not known here.
func processCPU() (time.Duration, bool) { return 0, false }
