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
	"runtime"
	"slices"
	"strings"
)

// cniPlugins is where Debian has them.
const cniPlugins = "/usr/lib/cni"

var errNotRoot = errors.New("only root can start and stop a node: it creates namespaces, cgroups and a network link")

// requirement is a program of the machine that the node uses, and the package that has it.
type requirement struct{ program, pkg string }

var requirements = []requirement{
	{"runc", "runc"},
	{"nft", "nftables"},
	{"nsenter", "util-linux"},
	{cniPlugins + "/ptp", "containernetworking-plugins"},
}

// missingPackages lists the packages that the node needs and has found reports as missing.
func missingPackages(found func(program string) bool) []string {
	var list []string
	for _, r := range requirements {
		if !found(r.program) {
			list = append(list, r.pkg)
		}
	}
	return list
}

// programExists looks for a program as a root's shell does, even if the caller's PATH lacks the folders of root.
func programExists(name string) bool {
	if filepath.IsAbs(name) {
		_, err := os.Stat(name)
		return err == nil
	}
	return slices.ContainsFunc([]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"},
		func(dir string) bool { return programExists(filepath.Join(dir, name)) })
}

// installCommand is what installs packages on Debian.
func installCommand(packages []string) []string {
	return append([]string{"apt-get", "install", "-y", "--no-install-recommends"}, packages...)
}

// checkMachine reports everything that a node lacks here.
func checkMachine(l layout) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("a node needs Linux, and this is %s", runtime.GOOS)
	}
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errNotRoot)
	}
	if list := missingPackages(programExists); len(list) > 0 {
		errs = append(errs, fmt.Errorf("packages are missing: %s", strings.Join(installCommand(list), " ")))
	}
	if containerdDir(l) == "" && !programExists("apt-get") {
		errs = append(errs, errors.New("containerd is missing, and there is no apt-get to download it"))
	}
	if _, err := hierarchiesOfSelf(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// runPrep installs what checkMachine finds missing.
func runPrep(ctx context.Context, l layout, _ []string, _ io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("only root can install packages")
	}
	if list := missingPackages(programExists); len(list) > 0 {
		for _, args := range [][]string{{"apt-get", "update", "-q"}, installCommand(list)} {
			if err := runTool(ctx, "", args...); err != nil {
				return err
			}
		}
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = findContainerd(ctx, l)
	return err
}

// runTool runs a program whose output is for people.
func runTool(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	cmd.Env = append(cmd.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// containerdDir returns where containerd, its shim and ctr are, or "": in the cache, or on the machine.
func containerdDir(l layout) string {
	for _, dir := range []string{filepath.Join(l.root, "containerd", "usr", "bin"), "/usr/local/bin", "/usr/bin"} {
		if programExists(filepath.Join(dir, "containerd")) && programExists(filepath.Join(dir, "ctr")) {
			return dir
		}
	}
	return ""
}

// findContainerd returns that directory. It unpacks Debian's package, and does not install it: that would start a
// service on the machine. The caller holds the lock.
func findContainerd(ctx context.Context, l layout) (string, error) {
	if dir := containerdDir(l); dir != "" {
		return dir, nil
	}
	note("downloading containerd")
	tmp := filepath.Join(l.root, "unpacking")
	if err := os.RemoveAll(tmp); err != nil {
		return "", err
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return "", err
	}
	// apt's own user, as whom it downloads, cannot write into the cache of root.
	if err := runTool(ctx, tmp, "apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", "containerd"); err != nil {
		return "", fmt.Errorf("%w (does apt-get update help?)", err)
	}
	archives, err := filepath.Glob(filepath.Join(tmp, "containerd_*.deb"))
	if err != nil || len(archives) != 1 {
		return "", fmt.Errorf("apt-get download has left %d archives of containerd in %s", len(archives), tmp)
	}
	if err := runTool(ctx, tmp, "dpkg", "-x", archives[0], "x"); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(tmp, "x"), filepath.Join(l.root, "containerd")); err != nil {
		return "", err
	}
	if err := os.RemoveAll(tmp); err != nil {
		return "", err
	}
	return containerdDir(l), nil
}
