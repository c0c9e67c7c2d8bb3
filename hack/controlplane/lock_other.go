// SPDX-License-Identifier: Apache-2.0

//go:build !darwin && !linux

package main

import (
	"context"
	"errors"
)

// lockFile refuses: kube-apiserver and envtest are not used on other systems here, and
// a cache without a lock would be worse than none.
func lockFile(context.Context, string, func()) (func(), error) {
	return nil, errors.New("not supported on this operating system; set " + assetsVariable)
}
