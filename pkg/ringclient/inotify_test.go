// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ringclient_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// inotifyChild names the variable that tells this program that it is the child of TestInotifyLimit.
const inotifyChild = "RINGCLIENT_INOTIFY_CHILD"

// TestInotifyLimit runs a client where the user has no inotify instance left, in a user namespace that has a limit of its own: it says
// so, and finds changes by its poll.
func TestInotifyLimit(t *testing.T) {
	if os.Getenv(inotifyChild) != "" {
		followWithoutInotify(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInotifyLimit$", "-test.v")
	child.Env = append(os.Environ(), inotifyChild+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := child.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("user namespaces are not allowed here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInotifyLimit") {
		t.Errorf("%v\n%s", err, out)
	}
}

func followWithoutInotify(t *testing.T) {
	if err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mount(t, dir, published(1, addressRing(t, 3)).files(t))
	c := open(t, dir, ringclient.Options{PollInterval: ringclient.MinPollInterval})
	if problem := c.Stats().WatchError; !strings.Contains(problem, "too many open files") {
		t.Errorf("the watch error is %q", problem)
	}
	mount(t, dir, published(2, addressRing(t, 4)).files(t))
	waitForGeneration(t, c, 2)
	if err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("8"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the watch", func() bool { return c.Stats().WatchError == "" })
}
