// SPDX-License-Identifier: Apache-2.0

//go:build unix

package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// watchdog is the shell script of the guard's process; $1 is the directory. It waits
// for the end of its standard input, which comes when this process closes the pipe or
// ends in whatever way. Then it kills the groups of all recorded processes (envtest makes
// each program the leader of one), waits for their end and removes the directory.
//
// A program that ended by itself has left a record whose number may belong to another
// process by now. Where there is a /proc, its command line must name the directory.
// The waits have an end, as a container without an init process keeps the dead for ever.
const watchdog = `
ours() {
	[ ! -e /proc/self/cmdline ] || grep -qF "$dir/" "/proc/$1/cmdline" 2>/dev/null
}
wait_until() {
	n=0
	until "$@"; do
		[ $n -lt 50 ] || return 1
		n=$((n+1))
		sleep 0.1
	done
}
ended() { ! kill -s 0 -- "-$1" 2>/dev/null; }
removed() { rm -rf "$dir" 2>/dev/null; }

dir=$1
while read -r _; do :; done
rm -f "$dir/armed"
for record in "$dir"/*.pid; do
	[ -e "$record" ] && read -r pid <"$record" && ours "$pid" || continue
	kill -s KILL -- "-$pid" 2>/dev/null
	wait_until ended "$pid"
done
wait_until removed
`

// A guard owns the directory of one control plane and a process that outlives this one
// by a moment. A signal on the parent's death (as prctl on Linux has) would need no
// process, but it follows the thread that started the program, which Go may end.
type guard struct {
	dir      string
	logs     []*os.File
	cmd      *exec.Cmd
	lifeline io.Closer
	killOnce sync.Once
	killErr  error
}

// newGuard makes the directory and starts the watchdog.
func newGuard() (*guard, error) {
	dir, err := os.MkdirTemp("", "ringwright-testenv-")
	if err != nil {
		return nil, err
	}
	g := &guard{dir: dir, cmd: exec.Command("/bin/sh", "-c", watchdog, "watchdog", dir)}
	// In a group of its own it survives the interrupt of a terminal. It has no output:
	// go test would wait for the end of a process that has its own.
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g.lifeline, err = g.cmd.StdinPipe()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "armed"), nil, 0o600)
	}
	if err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return g, nil
}

// kill kills what still runs, removes the directory and returns when both are done.
func (g *guard) kill() error {
	g.killOnce.Do(func() {
		err := errors.Join(g.lifeline.Close(), g.cmd.Wait())
		if err != nil {
			g.killErr = fmt.Errorf("removing the control plane in %s: %w", g.dir, err)
		}
	})
	return g.killErr
}
