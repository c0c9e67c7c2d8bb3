// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// sysctls are the kernel's switches that the kubelet insists on. They are the whole machine's, so that the node is shown
// files with these values in their place.
var sysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// ownDirs are directories of which the node has its own: programs in it write there, whatever they are told.
var ownDirs = []string{"/var/lib/cni", "/var/lib/kubelet", "/var/log"}

// mount is a call of mount(2).
type mount struct {
	source, target, fstype string
	flags                  uintptr
	options                string
}

// setUpMounts gives the node its own view of the machine's directories. All of it is in the node's mount namespace, and
// vanishes with it.
func setUpMounts(s spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	// The old ones show the machine's cgroups.
	if err := unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmounting the machine's cgroups: %w", err)
	}
	if err := mountAll(baseMounts(s)); err != nil {
		return err
	}
	if err := mountSysctls(); err != nil {
		return err
	}
	// The kubelet mounts volumes that containerd must see, and the other way round.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("making mounts shared: %w", err)
	}
	return nil
}

// baseMounts lists, in their order, the mounts but those of sysctls.
func baseMounts(s spec) []mount {
	list := []mount{
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"sysfs", "/sys", "sysfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"tmpfs", "/sys/fs/cgroup", "tmpfs", 0, "mode=755"},
	}
	for _, h := range s.Hierarchies {
		list = append(list, mount{"cgroup", filepath.Join("/sys/fs/cgroup", h.name()), "cgroup", 0, h.mountOptions()})
	}
	list = append(list, mount{"tmpfs", "/run", "tmpfs", 0, "mode=755"})
	for _, dir := range ownDirs {
		list = append(list, mount{s.file("dirs" + dir), dir, "", unix.MS_BIND, ""})
	}
	return list
}

func mountAll(list []mount) error {
	for _, m := range list {
		if _, err := os.Stat(m.target); err != nil {
			if err := os.MkdirAll(m.target, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(m.source, m.target, m.fstype, m.flags, m.options); err != nil {
			return fmt.Errorf("mounting %s on %s: %w", m.source, m.target, err)
		}
	}
	return nil
}

// mountSysctls puts files in the place of the kernel's switches.
func mountSysctls() error {
	dir := "/run/sysctl"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var names []string
	for name := range sysctls {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, []byte(sysctls[name]+"\n"), 0o644); err != nil {
			return err
		}
		if err := mountAll([]mount{{file, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""}}); err != nil {
			return err
		}
	}
	return nil
}
