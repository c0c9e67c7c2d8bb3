// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// deathPatience is how long killed processes may take to vanish.
	deathPatience = 20 * time.Second
	// tailLines is how much of each log the error of a failed start has.
	tailLines = 5
)

// errDown is the error of what needs a node that is up.
var errDown = errors.New("the node is not up (start it with up)")

// runDown stops the node and removes what it had.
func runDown(ctx context.Context, l layout, _ []string, _ io.Writer) error {
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return l.clear()
}

// clear kills what is left of a node, however far it came, and removes its network, cgroups and state. The logs stay.
// The state is there before anything else is, so that without it there is nothing.
func (l layout) clear() error {
	if _, err := os.Stat(l.state()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if pid, err := l.initPID(); err == nil {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing the node: %w", err)
		}
	}
	errs := []error{
		removeCgroups(l.lines("cgroups"), deathPatience),
		disconnectNode(),
	}
	for _, dir := range l.lines("made") {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err // The state knows what is to be removed.
	}
	if err := os.RemoveAll(l.state()); err != nil {
		return fmt.Errorf("removing the state of the node: %w", err)
	}
	return nil
}

// lines reads a file of the state, which may be missing.
func (l layout) lines(name string) []string {
	data, err := os.ReadFile(l.state(name))
	if err != nil || len(data) == 0 {
		return nil
	}
	return strings.Split(string(data), "\n")
}

// initPID returns the process of a node that is up.
func (l layout) initPID() (int, error) {
	fields := l.lines("init")
	if len(fields) != 2 {
		return 0, errDown
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || startTime(pid) != fields[1] {
		return 0, errDown // Another process may have its number by now.
	}
	return pid, nil
}

// startTime tells processes apart that have the same number. It is empty when there is no such process, or a dead one.
func startTime(pid int) string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	return parseStartTime(string(data))
}

// parseStartTime reads the text of /proc/PID/stat. The name in it is in parentheses, and may have spaces and parentheses.
func parseStartTime(stat string) string {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// tails returns the last lines of all logs as an error.
func (l layout) tails() error {
	files, _ := filepath.Glob(l.log("*"))
	if len(files) == 0 {
		return nil
	}
	var b strings.Builder
	for _, file := range files {
		data, _ := os.ReadFile(file)
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		lines = lines[max(0, len(lines)-tailLines):]
		fmt.Fprintf(&b, "\n%s:\n  %s", file, strings.Join(lines, "\n  "))
	}
	return fmt.Errorf("the ends of the logs:%s", b.String())
}

// runStatus prints whether the node is up and ready.
func runStatus(ctx context.Context, l layout, _ []string, stdout io.Writer) error {
	pid, err := l.initPID()
	if err != nil {
		return err
	}
	api, err := newAPI(l.kubeconfig())
	if err != nil {
		return err
	}
	if err := api.ready(ctx); err != nil {
		return fmt.Errorf("the node is up, as process %d, and not ready: %w", pid, err)
	}
	return printLine(stdout, fmt.Sprintf("ready\nprocess %d\nkubeconfig %s\nlogs %s", pid, l.kubeconfig(), filepath.Dir(l.log(""))))
}

// runKubeconfig prints the path of the kubeconfig of a node that is up.
func runKubeconfig(_ context.Context, l layout, _ []string, stdout io.Writer) error {
	if _, err := l.initPID(); err != nil {
		return err
	}
	return printLine(stdout, l.kubeconfig())
}

// runEnter runs a command in the node's namespaces and gives back its exit code.
func runEnter(ctx context.Context, l layout, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("enter: name a command, such as sh")
	}
	cmd, err := l.inside(ctx, args...)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}

// inside prepares a command in the node's namespaces.
func (l layout) inside(ctx context.Context, args ...string) (*exec.Cmd, error) {
	pid, err := l.initPID()
	if err != nil {
		return nil, err
	}
	s, err := readSpec(l.state("spec.json"))
	if err != nil {
		return nil, err
	}
	enter := []string{"--target", strconv.Itoa(pid), "--all", "--", "env", "PATH=" + searchPath(s),
		"CONTAINERD_NAMESPACE=" + containerNS, "KUBECONFIG=" + l.kubeconfig()}
	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...), nil
}
