// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// initCommand makes this program the node's init. Nobody types it.
	initCommand = "init-of-the-node"
	// initPatience is how long the API server may take to answer, on a busy machine.
	initPatience = 2 * time.Minute
)

// initMain is the first process in the namespaces of the node, until the end of the node. Standard input has the path of
// the spec once the network is connected, and ends without one when the up that started this process has died.
func initMain() int {
	path, err := io.ReadAll(os.Stdin)
	if err != nil || len(path) == 0 {
		return exitFailure
	}
	if err := serve(string(path)); err != nil {
		fmt.Printf("init: %v\n", err)
	}
	return exitFailure // It never ends in good order: down kills it.
}

// serve starts the node, and returns when something that it needs has ended.
func serve(path string) error {
	s, err := readSpec(path)
	if err != nil {
		return err
	}
	if err := setUpMounts(s); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(nodeName)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := setUpNetwork(); err != nil {
		return err
	}
	if err := os.Setenv("PATH", searchPath(s)); err != nil {
		return err
	}
	r := newReaper()
	if err := startComponents(s, r); err != nil {
		return err
	}
	if err := os.WriteFile(s.file("started"), nil, 0o644); err != nil {
		return err
	}
	return r.firstDeath()
}

// searchPath is where the node finds its programs: containerd looks there for its shim and for runc.
func searchPath(s spec) string {
	return s.Containerd + ":" + s.Programs + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// startComponents starts the datastore, the runtime and the API server, and the others when they answer.
func startComponents(s spec, r *reaper) error {
	ctx, cancel := context.WithTimeout(context.Background(), initPatience)
	defer cancel()
	for _, c := range s.firstComponents() {
		if err := r.startComponent(s, c); err != nil {
			return err
		}
	}
	api, err := newAPI(s.file("kubeconfig"))
	if err != nil {
		return err
	}
	alive := func() error { return r.dead() }
	if err := poll(ctx, alive, "containerd to import an image", func() error { return importPause(s, r) }); err != nil {
		return err
	}
	if err := poll(ctx, alive, "the API server", func() error { return api.get(ctx, "/readyz", nil) }); err != nil {
		return err
	}
	for _, c := range s.lateComponents() {
		if err := r.startComponent(s, c); err != nil {
			return err
		}
	}
	return nil
}

// importPause imports the image of the pods' first process. Importing it twice does no harm.
func importPause(s spec, r *reaper) error {
	if _, err := os.Stat("/run/containerd/containerd.sock"); err != nil {
		return err
	}
	cmd := exec.Command(s.ctr(), "--namespace", containerNS, "images", "import", filepath.Join(s.Programs, pauseArchive))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return r.run(cmd)
}

// poll calls try until it succeeds. It gives up when alive fails or ctx ends, with the last error of try.
func poll(ctx context.Context, alive func() error, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if dead := alive(); dead != nil {
			return fmt.Errorf("waiting for %s: %w", what, dead)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
