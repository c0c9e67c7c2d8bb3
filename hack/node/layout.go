// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// The node's names and addresses. They are fixed: a machine has one such node at most.
const (
	nodeName    = "ringwright-node"
	hostLink    = "rwnode0" // The host's end of the link; at most 15 bytes.
	peerLink    = "rwnode1" // The node's end, until it is called eth0 there.
	hostIP      = "172.31.255.1"
	nodeIP      = "172.31.255.2"
	linkNet     = "172.31.255.0/30"
	podNet      = "10.244.0.0/16"
	nodePodNet  = "10.244.0.0/24"
	serviceNet  = "10.96.0.0/16"
	apiService  = "10.96.0.1" // The first address of serviceNet is that of the API server.
	apiPort     = "6443"
	apiURL      = "https://" + nodeIP + ":" + apiPort
	pauseImage  = "localhost/ringwright-pause:1"
	containerNS = "k8s.io" // Where the kubelet's containers and images are in containerd.
)

// layout names the places on disk. Below root are, for good, the programs, and, while the node is up, its state.
// The logs of the last node stay until the next one starts.
type layout struct{ root string }

// newLayout places everything into the user's cache directory.
func newLayout() (layout, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return layout{}, fmt.Errorf("finding the user's cache directory: %w (set HOME or XDG_CACHE_HOME)", err)
	}
	return layout{filepath.Join(dir, "ringwright", "node")}, nil
}

func (l layout) state(parts ...string) string {
	return filepath.Join(append([]string{l.root, "state"}, parts...)...)
}

func (l layout) log(component string) string { return filepath.Join(l.root, "log", component+".log") }
func (l layout) kubeconfig() string          { return l.state("kubeconfig") }

// lock keeps two invocations apart that change the node. The kernel releases it when its holder dies.
func (l layout) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(l.root, 0o755); err != nil {
		return nil, err
	}
	// Nothing that is started inherits it: Go opens files close-on-exec.
	f, err := os.OpenFile(filepath.Join(l.root, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			_ = f.Close()
			return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		if !told {
			note("waiting for another up or down")
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
