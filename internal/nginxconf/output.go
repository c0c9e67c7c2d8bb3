// SPDX-License-Identifier: Apache-2.0

package nginxconf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	// commandTimeout is how long a command may take.
	commandTimeout = 30 * time.Second
	// maxOutputBytes is how much of what a command wrote an error repeats.
	maxOutputBytes = 1024
)

// replace puts content into the file at once: whoever opens the file finds the one or the other.
func replace(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // It is gone where all went well.
	_, err = temporary.Write(content)
	// NGINX may run as another user.
	if err := errors.Join(err, temporary.Chmod(0o644), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// install puts content into the output, and what was there before back where the test command says no.
func (c Config) install(ctx context.Context, content []byte) error {
	before, err := os.ReadFile(c.Output)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	if err := replace(c.Output, content); err != nil || c.TestCommand == "" {
		return err
	}
	err = run(ctx, c.TestCommand)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the new file is not taken: %w", err)
	if missing {
		return errors.Join(err, os.Remove(c.Output))
	}
	return errors.Join(err, replace(c.Output, before))
}

// tell makes NGINX read its configuration again.
func (c Config) tell(ctx context.Context) error {
	switch {
	case c.ReloadCommand != "":
		return run(ctx, c.ReloadCommand)
	case c.PIDFile != "":
		return hangUp(c.PIDFile)
	default:
		return nil
	}
}

// run runs a command without a shell. Its error has the end of what it wrote.
func run(ctx context.Context, command string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	words := strings.Fields(command)
	process := exec.CommandContext(ctx, words[0], words[1:]...)
	process.WaitDelay = time.Second // A child of it may hold the pipe open.
	output, err := process.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end within %v", commandTimeout)
	}
	output = bytes.TrimSpace(output)
	return fmt.Errorf("%s: %w: %s", command, err, output[max(0, len(output)-maxOutputBytes):])
}

// hangUp sends SIGHUP to the process that a file names, if that is NGINX: its number may belong to another by now.
func hangUp(pidFile string) error {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 2 {
		return fmt.Errorf("%s holds %.40q, not a process", pidFile, text)
	}
	if title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && !bytes.HasPrefix(title, []byte("nginx: master")) {
		return fmt.Errorf("process %d of %s is %.40q, not NGINX", pid, pidFile, bytes.ReplaceAll(title, []byte{0}, []byte{' '}))
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("sending SIGHUP to process %d of %s: %w", pid, pidFile, err)
	}
	return nil
}
