// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import (
	"errors"
	"time"
)

// processorTime is not known here.
func processorTime() (time.Duration, error) {
	return 0, errors.New("the processor time of a process is measured on Unix only")
}
