// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
)

// reaper waits for every child of an init: its own, and those that others have left to it. With it in the process,
// os/exec must not wait by itself, as either could take the other's child.
type reaper struct {
	mu    sync.Mutex // Held while a child starts, so that it is not waited for before its name is known.
	ends  map[int]func(syscall.WaitStatus)
	cause error         // Why the node is dead.
	death chan struct{} // Closed when cause is set.
}

func newReaper() *reaper {
	r := &reaper{ends: map[int]func(syscall.WaitStatus){}, death: make(chan struct{})}
	go r.loop()
	return r
}

// loop waits for children for ever.
func (r *reaper) loop() {
	children := make(chan os.Signal, 1) // One is enough to reap many.
	signal.Notify(children, syscall.SIGCHLD)
	for range children {
		for r.reapOne() {
		}
	}
}

// reapOne reports whether there was a child to reap.
func (r *reaper) reapOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err != nil || pid <= 0 {
		return errors.Is(err, syscall.EINTR)
	}
	if end, ok := r.ends[pid]; ok {
		delete(r.ends, pid)
		end(status)
	}
	return true
}

// start starts a command and calls end, once, with how it ended.
func (r *reaper) start(cmd *exec.Cmd, end func(syscall.WaitStatus)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	r.ends[cmd.Process.Pid] = end
	return nil
}

// run runs a command to its end. The command may write to files only, as nothing would wait for copies to a writer.
func (r *reaper) run(cmd *exec.Cmd) error {
	ended := make(chan syscall.WaitStatus, 1)
	if err := r.start(cmd, func(s syscall.WaitStatus) { ended <- s }); err != nil {
		return err
	}
	if status := <-ended; status != 0 {
		return fmt.Errorf("%s: %s", filepath.Base(cmd.Path), describe(status))
	}
	return nil
}

// startComponent starts a component, without which the node is dead.
func (r *reaper) startComponent(s spec, c component) error {
	log, err := os.OpenFile(filepath.Join(s.Logs, c.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // The child has a copy.
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.State, log, log
	err = r.start(cmd, func(status syscall.WaitStatus) {
		if r.cause == nil {
			r.cause = fmt.Errorf("%s ended: %s", c.name, describe(status))
			close(r.death)
		}
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.name, err)
	}
	return nil
}

// dead returns why the node is dead, or nil.
func (r *reaper) dead() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// firstDeath waits until a component ends.
func (r *reaper) firstDeath() error {
	<-r.death
	return r.dead()
}

func describe(s syscall.WaitStatus) string {
	if s.Signaled() {
		return "killed by signal " + s.Signal().String()
	}
	return fmt.Sprintf("exit status %d", s.ExitStatus())
}
