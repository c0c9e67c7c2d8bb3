// SPDX-License-Identifier: Apache-2.0

//go:build darwin || linux

package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lockRetry is how often a waiting process asks for the lock. A blocking flock would
// not notice an interrupt.
const lockRetry = 200 * time.Millisecond

// lockFile takes an exclusive lock on path, which it creates. When another process has
// it, lockFile calls waiting once and waits until ctx ends. The kernel releases the lock
// when its holder dies, so a crash locks nobody out. The file stays: removing it would
// let two processes hold locks on two files of one name.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil // Only read from, so nothing can be lost.
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			_ = f.Close()
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
		if !told {
			waiting()
			told = true
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(lockRetry):
		}
	}
}
