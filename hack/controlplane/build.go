// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// coldBuild is the CPU time of a build with an empty build cache, as measured.
const coldBuild = 8 * time.Minute

// sourceBuild builds the programs with the Go command.
type sourceBuild struct {
	pins    pins
	cache   *cache
	prog    *progress
	rebuild bool // Build even what the cache has.
}

// find returns the directory of the cache entry, after a build if need be.
func (b *sourceBuild) find(ctx context.Context, need []string) (string, error) {
	return b.cache.install(ctx, b.pins.sourceEntry(), need, b.rebuild, b.build)
}

// build puts the named programs into dir.
func (b *sourceBuild) build(ctx context.Context, dir string, names []string) error {
	module, err := writeModule(dir)
	if err != nil {
		return err
	}
	b.prog.note(fmt.Sprintf("building %s (Kubernetes %s, etcd %s) from source: about %s with an empty build cache, seconds with a full one",
		strings.Join(names, ", "), b.pins.kubernetes, b.pins.etcd, expectedBuild()))
	m := &meter{}
	stop := b.prog.watch(m.status)
	err = b.compile(ctx, module, dir, names, m)
	stop()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(dir, programs[name].output), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("naming what was built: %w", err)
		}
		if err := checkVersion(ctx, dir, name, b.pins.version(name)); err != nil {
			return err
		}
	}
	return nil
}

// compile runs the Go command. The first call downloads the modules and counts the
// packages, so that the second one can tell how far it is.
func (b *sourceBuild) compile(ctx context.Context, module, dir string, names []string, m *meter) error {
	var pkgs []string
	for _, name := range names {
		pkgs = append(pkgs, programs[name].pkg)
	}
	list, err := goCommand(ctx, module, m.observe, append([]string{"list", "-deps"}, pkgs...)...)
	if err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	m.expect(bytes.Count(list, []byte("\n")), pkgs)

	args := append([]string{"build", "-v", "-o", dir}, b.pins.buildFlags()...)
	if _, err := goCommand(ctx, module, m.observe, append(args, pkgs...)...); err != nil {
		return fmt.Errorf("building from source: %w", err)
	}
	return nil
}

// expectedBuild estimates the duration of a build with an empty cache on this machine.
func expectedBuild() time.Duration {
	return (coldBuild / time.Duration(runtime.NumCPU())).Round(10 * time.Second)
}

// writeModule writes a module with the embedded go.mod and go.sum below dir. It has no
// package of its own; the packages to build are named by their import paths.
func writeModule(dir string) (string, error) {
	module := filepath.Join(dir, "module")
	if err := os.Mkdir(module, 0o755); err != nil {
		return "", fmt.Errorf("preparing the module: %w", err)
	}
	for name, data := range map[string][]byte{"go.mod": goMod, "go.sum": goSum} {
		if err := os.WriteFile(filepath.Join(module, name), data, 0o644); err != nil {
			return "", fmt.Errorf("preparing the module: %w", err)
		}
	}
	return module, nil
}

// checkVersion runs a program, which shows that it works here, and compares its version,
// which shows that the linker flags arrived.
func checkVersion(ctx context.Context, dir, name, version string) error {
	path := filepath.Join(dir, name)
	out, err := exec.CommandContext(ctx, path, programs[name].versionArgs...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w: %s", name, err, bytes.TrimSpace(out))
	}
	if !strings.Contains(string(out), version) {
		return fmt.Errorf("%s was built as %q and not as version %s", name, bytes.TrimSpace(out), version)
	}
	return nil
}
