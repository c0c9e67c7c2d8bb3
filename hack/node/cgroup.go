// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hierarchy is one tree of cgroup v1: the controllers that it has, as the options of its mount, and the cgroup in it that
// this process runs in.
type hierarchy struct {
	Options string // Such as "memory", "cpu,cpuacct" or "name=systemd".
	Dir     string
}

// name is what the directory of the hierarchy is called below /sys/fs/cgroup.
func (h hierarchy) name() string { return strings.TrimPrefix(h.Options, "name=") }

// mountOptions are the options that mount it once more.
func (h hierarchy) mountOptions() string {
	if strings.HasPrefix(h.Options, "name=") {
		return "none," + h.Options
	}
	return h.Options
}

// child is the node's cgroup in the hierarchy.
func (h hierarchy) child() string { return filepath.Join(h.Dir, nodeName) }

// neededControllers are those without which the kubelet does not start.
var neededControllers = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids"}

// findHierarchies reads the text of /proc/self/cgroup and of /proc/self/mountinfo.
func findHierarchies(cgroup, mountinfo string) ([]hierarchy, error) {
	mounts := cgroupMounts(mountinfo)
	var found []hierarchy
	var have []string
	for sc := bufio.NewScanner(strings.NewReader(cgroup)); sc.Scan(); {
		parts := strings.SplitN(sc.Text(), ":", 3)
		if len(parts) != 3 || parts[1] == "" { // The empty one is cgroup v2.
			continue
		}
		m, ok := mounts[parts[1]]
		if !ok {
			continue
		}
		inside, err := filepath.Rel(m.root, parts[2])
		if err != nil || strings.HasPrefix(inside, "..") {
			continue // The mount shows another part of the hierarchy.
		}
		found = append(found, hierarchy{Options: parts[1], Dir: filepath.Join(m.point, inside)})
		have = append(have, strings.Split(parts[1], ",")...)
	}
	var missing []string
	for _, c := range neededControllers {
		if !slices.Contains(have, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("no cgroup v1 hierarchy with the controllers %s is mounted (cgroup v2 is not supported here)",
			strings.Join(missing, ", "))
	}
	return found, nil
}

type cgroupMount struct{ root, point string }

// cgroupMounts finds the mounts of cgroup v1 in the text of a mountinfo, by their controllers.
func cgroupMounts(mountinfo string) map[string]cgroupMount {
	mounts := map[string]cgroupMount{}
	for sc := bufio.NewScanner(strings.NewReader(mountinfo)); sc.Scan(); {
		before, after, _ := strings.Cut(sc.Text(), " - ")
		mount, fstype := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(fstype) < 3 || fstype[0] != "cgroup" {
			continue
		}
		var controllers []string
		for _, o := range strings.Split(fstype[2], ",") {
			if !slices.Contains([]string{"rw", "ro", "xattr", "clone_children"}, o) && !strings.HasPrefix(o, "release_agent=") {
				controllers = append(controllers, o)
			}
		}
		mounts[strings.Join(controllers, ",")] = cgroupMount{root: mount[3], point: mount[4]}
	}
	return mounts
}

// hierarchiesOfSelf are those of this process.
func hierarchiesOfSelf() ([]hierarchy, error) {
	cgroup, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return findHierarchies(string(cgroup), string(mountinfo))
}

// createCgroups makes the node's cgroups.
func createCgroups(list []hierarchy) error {
	for _, h := range list {
		if err := os.Mkdir(h.child(), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("creating a cgroup: %w", err)
		}
		if !slices.Contains(strings.Split(h.Options, ","), "cpuset") {
			continue
		}
		// A new cpuset has no processors, and no process can enter it.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(h.Dir, file))
			if err == nil {
				err = os.WriteFile(filepath.Join(h.child(), file), value, 0o644)
			}
			if err != nil {
				return fmt.Errorf("giving processors to the node: %w", err)
			}
		}
	}
	return nil
}

// moveInto moves a process into the cgroup of each hierarchy that dir returns.
func moveInto(list []hierarchy, pid int, dir func(hierarchy) string) error {
	for _, h := range list {
		if err := os.WriteFile(filepath.Join(dir(h), "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("moving process %d between cgroups: %w", pid, err)
		}
	}
	return nil
}

// removeCgroups kills what runs in the directories and removes them. A killed process leaves its cgroup a moment later.
func removeCgroups(dirs []string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		left := 0
		for _, dir := range dirs {
			left += clearCgroup(dir)
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d cgroups are still in use after %s: see cgroup.procs below %s", left, patience, strings.Join(dirs, ", "))
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // The kernel does not tell when a v1 cgroup is empty.
	}
}

// clearCgroup kills the processes of a tree and removes what is empty of it. It returns how many cgroups are left.
func clearCgroup(dir string) int {
	var tree []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			tree = append(tree, path)
		}
		return nil // What vanishes meanwhile is what is wanted.
	})
	left := 0
	for _, path := range slices.Backward(tree) { // Children before parents.
		data, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if err := syscall.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left++
		}
	}
	return left
}
