// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// modulePath is the path of the module that has config/crd and hack/controlplane.
const modulePath = "github.com/ringwright/ringwright"

// launcherGrace is how long hack/controlplane may take to end after an interrupt.
const launcherGrace = 15 * time.Second

// Assets returns the directory of etcd and kube-apiserver: the value of KUBEBUILDER_ASSETS
// if that is set, or else what hack/controlplane of the module around the working directory
// prints. That may build them, for minutes, with progress to log.
func Assets(ctx context.Context, log io.Writer) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, checkAssets(dir)
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", fmt.Errorf("finding etcd and kube-apiserver: %w (or set KUBEBUILDER_ASSETS)", err)
	}
	dir, err := runLauncher(ctx, filepath.Join(root, "hack", "controlplane"), log)
	if err != nil {
		return "", fmt.Errorf("finding etcd and kube-apiserver: %w", err)
	}
	return dir, nil
}

// checkAssets reports what dir lacks. envtest would say that a timeout has passed.
func checkAssets(dir string) error {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("KUBEBUILDER_ASSETS=%s: %w", dir, err)
		}
	}
	return nil
}

// runLauncher builds the program in dir, runs it and returns what it prints. It does not
// use go run, which would pass no interrupt on and leave a build running.
func runLauncher(ctx context.Context, dir string, log io.Writer) (assets string, err error) {
	tmp, err := os.MkdirTemp("", "ringwright-controlplane-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()

	launcher := filepath.Join(tmp, "controlplane")
	build := command(ctx, log, "go", "-C", dir, "build", "-o", launcher, ".")
	build.Env = append(build.Environ(), "GOWORK=off") // It is a module of its own.
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building %s: %w", dir, err)
	}
	var out bytes.Buffer
	run := command(ctx, log, launcher)
	run.Stdout = &out
	if err := run.Run(); err != nil {
		return "", fmt.Errorf("running %s: %w", dir, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// command returns a command that is interrupted when ctx ends.
func command(ctx context.Context, log io.Writer, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = launcherGrace
	return cmd
}

// ModuleRoot returns the root directory of this module's source: the nearest directory
// at or above the working directory whose go.mod declares the module. go test runs a test in its
// package's directory, so tests find it without being told.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		// Modules nested in this one have longer paths: compare the whole line.
		for line := range strings.Lines(string(data)) {
			if strings.TrimSpace(line) == "module "+modulePath {
				return dir, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the source of module %s", start, modulePath)
		}
	}
}
