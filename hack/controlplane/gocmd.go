// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// interruptGrace is how long an interrupted Go command may take to remove its
	// work directory before it is killed.
	interruptGrace = 10 * time.Second
	// errorLines is how much of its standard error a failed Go command's error has.
	errorLines = 20
)

// goCommand runs the Go command in the module in dir and returns its standard output.
// Each line of its standard error goes to observe, which returns whether it was progress;
// the last of the others are part of the error.
func goCommand(ctx context.Context, dir string, observe func(string) bool, args ...string) ([]byte, error) {
	var stdout bytes.Buffer
	var tail []string
	stderr := &lineWriter{line: func(line string) {
		if observe(line) {
			return
		}
		tail = append(tail, line)
		tail = tail[max(0, len(tail)-errorLines):]
	}}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), goEnvironment()...)
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	err := cmd.Run()
	stderr.flush()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("go %s: %w", args[0], ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, strings.Join(tail, "\n"))
	}
	return stdout.Bytes(), nil
}

// goEnvironment makes the result depend on the module alone: no workspace and no flags
// of the user, and no C compiler, whose absence or version would show.
func goEnvironment() []string {
	return []string{"GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0"}
}

// lineWriter calls line for each line that is written to it.
type lineWriter struct {
	line    func(string)
	pending []byte
}

// Write never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.pending = append(w.pending, p...)
	for {
		line, rest, found := bytes.Cut(w.pending, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.line(string(bytes.TrimSuffix(line, []byte("\r"))))
		w.pending = rest
	}
}

// flush passes on a last line that has no newline.
func (w *lineWriter) flush() {
	if len(w.pending) > 0 {
		w.line(string(w.pending))
		w.pending = nil
	}
}
