// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// oneEach is a machine with a mount for each controller, whose memory hierarchy this process is not in the root of.
	oneEach = `9:name=systemd:/
8:pids:/
6:freezer:/
5:devices:/
4:memory:/session/0a1b
3:cpuset:/
2:cpuacct:/
1:cpu:/
0::/
`
	oneEachMounts = `24 1 0:22 / /sys rw - sysfs sysfs rw
30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
32 30 0:28 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
33 30 0:29 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
34 30 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
35 30 0:31 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices
36 30 0:32 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
37 30 0:33 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
38 30 0:34 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
39 30 0:35 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
)

func TestFindHierarchies(t *testing.T) {
	got, err := findHierarchies(oneEach, oneEachMounts)
	if err != nil {
		t.Fatal(err)
	}
	want := []hierarchy{
		{"name=systemd", "/sys/fs/cgroup/systemd"},
		{"pids", "/sys/fs/cgroup/pids"},
		{"freezer", "/sys/fs/cgroup/freezer"},
		{"devices", "/sys/fs/cgroup/devices"},
		{"memory", "/sys/fs/cgroup/memory/session/0a1b"},
		{"cpuset", "/sys/fs/cgroup/cpuset"},
		{"cpuacct", "/sys/fs/cgroup/cpuacct"},
		{"cpu", "/sys/fs/cgroup/cpu"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("findHierarchies = %v, want %v", got, want)
	}
}

func TestFindHierarchiesSharedMount(t *testing.T) {
	cgroup := strings.NewReplacer("2:cpuacct:/\n", "", "1:cpu:/", "1:cpu,cpuacct:/docker/1/x").Replace(oneEach)
	mounts := strings.NewReplacer("/ /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n",
		"/docker/1 /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n").Replace(oneEachMounts)
	got, err := findHierarchies(cgroup, mounts)
	if err != nil {
		t.Fatal(err)
	}
	if want := (hierarchy{"cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/x"}); !slices.Contains(got, want) {
		t.Errorf("findHierarchies = %v, want one of them %v", got, want)
	}
}

func TestFindHierarchiesMissing(t *testing.T) {
	tests := map[string]struct{ cgroup, mounts, want string }{
		"cgroup v2 only":      {"0::/\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "cpu, cpuacct, cpuset, memory, devices, freezer, pids"},
		"one is not mounted":  {oneEach, strings.ReplaceAll(oneEachMounts, "rw,pids", "rw,rdma"), "controllers pids is mounted"},
		"another part of it":  {oneEach, strings.ReplaceAll(oneEachMounts, "0:30 / ", "0:30 /other "), "controllers memory is mounted"},
		"mounted, not joined": {strings.ReplaceAll(oneEach, "8:pids:/\n", ""), oneEachMounts, "controllers pids is mounted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := findHierarchies(tc.cgroup, tc.mounts)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestHierarchyMount(t *testing.T) {
	tests := map[string]struct{ name, options string }{
		"memory":       {"memory", "memory"},
		"cpu,cpuacct":  {"cpu,cpuacct", "cpu,cpuacct"},
		"name=systemd": {"systemd", "none,name=systemd"},
	}
	for options, want := range tests {
		h := hierarchy{Options: options, Dir: "/x"}
		if h.name() != want.name || h.mountOptions() != want.options {
			t.Errorf("%s is mounted as %q with %q, want %q with %q", options, h.name(), h.mountOptions(), want.name, want.options)
		}
	}
}

func TestCreateCgroups(t *testing.T) {
	dir := t.TempDir()
	list := []hierarchy{{"memory", filepath.Join(dir, "memory")}, {"cpuset", filepath.Join(dir, "cpuset")}}
	for _, h := range list {
		if err := os.Mkdir(h.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, value := range map[string]string{"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"} {
		if err := os.WriteFile(filepath.Join(dir, "cpuset", file), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // The second time they are there.
		if err := createCgroups(list); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(list[1].child(), "cpuset.cpus"))
	if string(got) != "0-1\n" || err != nil {
		t.Errorf("the node's processors are %q, %v, want those of its parent", got, err)
	}
}

func TestRemoveCgroups(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "node")
	if err := os.MkdirAll(filepath.Join(dir, "kubepods", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeCgroups([]string{dir, filepath.Join(dir, "never")}, time.Second); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there", dir)
	}
}

func TestRemoveCgroupsGivesUp(t *testing.T) {
	dir := t.TempDir() // A directory with a file cannot be removed, as a cgroup with a process cannot.
	if err := os.WriteFile(filepath.Join(dir, "tasks"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := removeCgroups([]string{dir}, 30*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error = %v, want one that names %s", err, dir)
	}
}
