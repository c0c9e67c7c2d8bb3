// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package testenv

import (
	"errors"
	"os"
)

// guard exists on Unix only; this one lets the package compile elsewhere.
type guard struct {
	dir  string
	logs []*os.File
}

func newGuard() (*guard, error) {
	return nil, errors.New("not supported on this operating system")
}

func (g *guard) kill() error { return nil }
