// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestRunCommandLine(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // No node is up there.
	tests := map[string]struct {
		args []string
		code int
		want string // On standard error.
	}{
		"nothing":          {nil, exitUsage, "Usage:"},
		"help":             {[]string{"-h"}, 0, "Usage:"},
		"unknown":          {[]string{"start"}, exitUsage, "Usage:"},
		"kubeconfig":       {[]string{"kubeconfig"}, exitFailure, "the node is not up"},
		"status":           {[]string{"status"}, exitFailure, "the node is not up"},
		"load nothing":     {[]string{"load"}, exitFailure, "name an archive"},
		"load no file":     {[]string{"load", "/no/such.tar"}, exitFailure, "loading /no/such.tar: open /no/such.tar"},
		"enter nothing":    {[]string{"enter"}, exitFailure, "name a command"},
		"enter":            {[]string{"enter", "true"}, exitFailure, "the node is not up"},
		"up with argument": {[]string{"up", "now"}, exitFailure, `unexpected argument "now"`},
		"frequency":        {[]string{"up", "-sync-frequency=-1s"}, exitFailure, "-sync-frequency is -1s and must not be negative"},
		"timeout":          {[]string{"up", "-timeout=0s"}, exitFailure, "-timeout is 0s and must be above 0"},
		"image, no tag":    {[]string{"image", "-o", "x", "y"}, exitFailure, "-tag, -o and a program are required"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), tc.args, &stdout, &stderr); code != tc.code {
				t.Errorf("the exit code is %d, want %d", code, tc.code)
			}
			if !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("standard error is %q, want %q in it", stderr.String(), tc.want)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output is %q, want nothing", stdout.String())
			}
		})
	}
}

func TestOverlapping(t *testing.T) {
	tests := map[string]string{
		"10.244.3.0/24":   podNet,
		"10.0.0.0/8":      podNet,
		"10.96.0.0/16":    serviceNet,
		"172.31.255.0/24": linkNet,
		"172.17.0.0/16":   "",
		"0.0.0.0/0":       "",
	}
	for text, want := range tests {
		_, dst, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := overlapping(dst); got != want {
			t.Errorf("overlapping(%s) = %q, want %q", text, got, want)
		}
	}
	if got := overlapping(nil); got != "" {
		t.Errorf("overlapping(nil) = %q", got)
	}
}

func TestMissingPackages(t *testing.T) {
	have := []string{"nsenter", "nft"}
	got := missingPackages(func(program string) bool { return slices.Contains(have, program) })
	if want := []string{"runc", "containernetworking-plugins"}; !slices.Equal(got, want) {
		t.Errorf("missingPackages = %q, want %q", got, want)
	}
}

func TestParseStartTime(t *testing.T) {
	after := strings.Repeat(" 0", 18) + " 4711 0 0"
	tests := map[string]string{
		"12 (node) S" + after:     "4711",
		"12 (a) Z (b)) R" + after: "4711",
		"12 (node) Z" + after:     "",
		"12 (node) S 0 0":         "",
		"":                        "",
	}
	for stat, want := range tests {
		if got := parseStartTime(stat); got != want {
			t.Errorf("parseStartTime(%q) = %q, want %q", stat, got, want)
		}
	}
	if startTime(os.Getpid()) == "" {
		t.Error("this process has no start time")
	}
}

func TestInitPID(t *testing.T) {
	l := layout{t.TempDir()}
	if err := os.MkdirAll(l.state(), 0o755); err != nil {
		t.Fatal(err)
	}
	self := strconv.Itoa(os.Getpid())
	tests := map[string]bool{
		self + "\n" + startTime(os.Getpid()): true,
		self + "\n1":                         false, // Another process had the number.
		self:                                 false,
		"":                                   false,
	}
	for text, up := range tests {
		if err := os.WriteFile(l.state("init"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := l.initPID(); (err == nil) != up {
			t.Errorf("with %q in its file: %v, want the node up: %t", text, err, up)
		}
	}
}

// The versions of the node and of its API server are to move together.
func TestOneKubernetes(t *testing.T) {
	other, err := os.ReadFile("../controlplane/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := kubernetesVersion(goMod), kubernetesVersion(other); got != want || got == "" {
		t.Errorf("this module builds Kubernetes %q, hack/controlplane %q", got, want)
	}
}

func TestLockExcludes(t *testing.T) {
	l := layout{t.TempDir()}
	unlock, err := l.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.lock(ctx); err == nil {
		t.Error("two have the lock")
	}
	unlock()
	again, err := l.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// A reaper takes the children of the whole process, so that this test has one of its own.
func TestReaper(t *testing.T) {
	if os.Getenv("NODE_TEST_REAPER") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReaper$")
		cmd.Env = append(os.Environ(), "NODE_TEST_REAPER=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	r := newReaper()
	if err := r.run(exec.Command("true")); err != nil {
		t.Errorf("true: %v", err)
	}
	if err := r.run(exec.Command("sh", "-c", "exit 3")); err == nil || err.Error() != "sh: exit status 3" {
		t.Errorf("exit 3: %v", err)
	}
	if err := r.dead(); err != nil {
		t.Errorf("a command that ended has killed the node: %v", err)
	}
	s := spec{State: t.TempDir(), Logs: t.TempDir()}
	if err := r.startComponent(s, component{"part", "/bin/sh", []string{"-c", "echo said; kill -9 $$"}}); err != nil {
		t.Fatal(err)
	}
	if err := r.firstDeath(); err == nil || err.Error() != "part ended: killed by signal killed" {
		t.Errorf("the end of a component: %v", err)
	}
	if log, err := os.ReadFile(filepath.Join(s.Logs, "part.log")); string(log) != "said\n" || err != nil {
		t.Errorf("its log is %q, %v", log, err)
	}
}
