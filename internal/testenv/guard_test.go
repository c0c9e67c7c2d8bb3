// SPDX-License-Identifier: Apache-2.0

//go:build unix

package testenv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sleeper stands for etcd and kube-apiserver: it ignores requests to end, and names the
// guard's directory in its command line as they do. It waits for a writer that never comes.
const sleeper = `#!/bin/sh
trap '' TERM INT
echo up
read -r _ <"$0.fifo"
`

// startSleeper starts a guarded program as envtest does. Its standard output says when it runs.
func startSleeper(g *guard, stdout *os.File) (*exec.Cmd, error) {
	assets := filepath.Join(g.dir, "assets")
	if err := os.Mkdir(assets, 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mkfifo(filepath.Join(assets, "etcd.fifo"), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(assets, "etcd"), []byte(sleeper), 0o700); err != nil {
		return nil, err
	}
	w, err := g.wrap(assets, "etcd")
	if err := errors.Join(err, g.closeLogs()); err != nil {
		return nil, err
	}
	cmd := exec.Command(w.script, "--data-dir="+w.dir)
	cmd.Stdout = stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, cmd.Start()
}

func TestGuardKill(t *testing.T) {
	g, err := newGuard()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := startSleeper(g, w)
	if err != nil {
		t.Fatal(err)
	}
	closeFile(t, w)
	readUp(t, r)
	var wg sync.WaitGroup
	wg.Go(func() { _ = cmd.Wait() }) // Its state says how it ended.
	for range 2 {                    // The second call is harmless.
		if err := g.kill(); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the program ended with %v", cmd.ProcessState)
	}
	if _, err := os.Stat(g.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", g.dir, err)
	}
	if err := exec.Command(cmd.Path).Run(); err == nil {
		t.Error("the program can be started again")
	}
}

// A program that is started while the guard kills must see that it came too late.
func TestGuardDisarmed(t *testing.T) {
	g, err := newGuard()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.kill() }()
	if err := os.Remove(filepath.Join(g.dir, "armed")); err != nil {
		t.Fatal(err)
	}
	cmd, err := startSleeper(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the program ended with %v, want exit status 1", err)
	}
}

// childVariable makes TestGuardChild do its work, in a process that is going to die.
const childVariable = "RINGWRIGHT_TESTENV_CHILD"

// Whatever ends this process, the guarded programs end with it.
func TestGuardOutlivesItsProcess(t *testing.T) {
	for _, way := range []string{"kill", "terminate", "panic", "exit"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			child := exec.Command(os.Args[0], "-test.run=^TestGuardChild$")
			child.Env = append(os.Environ(), childVariable+"="+way)
			child.ExtraFiles = []*os.File{w}
			stdin, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			closeFile(t, w)
			dir := readUp(t, r)
			switch way {
			case "kill":
				err = child.Process.Kill()
			case "terminate":
				err = child.Process.Signal(syscall.SIGTERM)
			default:
				err = stdin.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = child.Wait() // It fails in all ways but one.

			// The end of the file comes when no process has the other end of the pipe.
			if _, err := io.Copy(io.Discard, r); err != nil {
				t.Fatal(err)
			}
			waitUntilGone(t, dir)
		})
	}
}

func TestGuardChild(t *testing.T) {
	way := os.Getenv(childVariable)
	if way == "" {
		t.Skip("this is the process that TestGuardOutlivesItsProcess starts")
	}
	out := os.NewFile(3, "pipe")
	g, err := newGuard()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(out, g.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := startSleeper(g, out); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // Until the program runs.
	if way == "panic" {
		panic("on purpose")
	}
	os.Exit(0)
}

func closeFile(t *testing.T, f *os.File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// readUp reads until the sleeper says that it runs, and returns what came before.
func readUp(t *testing.T, r *os.File) string {
	t.Helper()
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var read strings.Builder
	for buf := make([]byte, 256); ; {
		n, err := r.Read(buf)
		read.Write(buf[:n])
		if before, ok := strings.CutSuffix(read.String(), "up\n"); ok {
			return strings.TrimSpace(before)
		}
		if err != nil {
			t.Fatalf("the program does not run: %q, %v", read.String(), err)
		}
	}
}

// waitUntilGone waits for the watchdog, which is not a child of this process any more.
func waitUntilGone(t *testing.T, dir string) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s is left", dir)
		}
	}
}
