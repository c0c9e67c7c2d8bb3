// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A cache keeps programs in one directory per entry. A program appears in its entry by
// a rename, so it is there in full or not at all; readers need no lock.
type cache struct {
	root    string
	rootErr error // Why there is no root; no harm when KUBEBUILDER_ASSETS has the programs.
	notify  func(string)
}

// cacheRoot is the directory of the cache: -cache-dir, or one in the user's cache directory.
func (o options) cacheRoot() (string, error) {
	if o.cacheDir != "" {
		return filepath.Abs(o.cacheDir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache directory: %w (set HOME or XDG_CACHE_HOME, or use -cache-dir)", err)
	}
	return filepath.Join(dir, "ringwright", "controlplane"), nil
}

// lookup returns the directory of the first entry that has all programs in need.
func (c *cache) lookup(need []string, entries ...string) (string, error) {
	if c.rootErr != nil {
		return "", c.rootErr
	}
	for _, entry := range entries {
		dir := filepath.Join(c.root, entry)
		if checkPrograms(dir, need) == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("nothing for this version in %s: %w", c.root, errUnavailable)
}

// install makes entry have all programs in need and returns its directory. It calls
// produce, once for all concurrent callers, to put the missing ones into an empty
// directory on the same file system; with renew it treats all as missing.
func (c *cache) install(ctx context.Context, entry string, need []string, renew bool,
	produce func(ctx context.Context, dir string, names []string) error,
) (string, error) {
	if c.rootErr != nil {
		return "", c.rootErr
	}
	dir := filepath.Join(c.root, entry)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache: %w", err)
	}
	unlock, err := lockFile(ctx, dir+".lock", func() {
		c.notify("waiting for another process that fills " + dir)
	})
	if err != nil {
		return "", fmt.Errorf("locking the cache: %w", err)
	}
	defer unlock()

	names := need
	if !renew {
		names = missing(dir, need) // Another process may have filled the entry meanwhile.
	}
	if len(names) == 0 {
		return dir, nil
	}
	return dir, c.fill(ctx, dir, names, produce)
}

// fill produces names in a temporary directory and renames them into dir.
// The caller holds the lock of dir.
func (c *cache) fill(ctx context.Context, dir string, names []string,
	produce func(ctx context.Context, dir string, names []string) error,
) (err error) {
	if err := removeLeftovers(dir); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(c.root, filepath.Base(dir)+tempInfix+"*")
	if err != nil {
		return fmt.Errorf("creating the cache: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()

	if err := produce(ctx, tmp, names); err != nil {
		return err
	}
	if err := checkPrograms(tmp, names); err != nil {
		return err // Before the first rename: all appear, or none.
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(tmp, name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("filling the cache: %w", err)
		}
	}
	return nil
}

// tempInfix separates an entry's name from the random part of its temporary directories.
const tempInfix = ".tmp-"

// removeLeftovers deletes what a killed process has left. The lock of the entry is
// held, so nobody works in there.
func removeLeftovers(dir string) error {
	siblings, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("cleaning the cache: %w", err)
	}
	for _, s := range siblings {
		if !strings.HasPrefix(s.Name(), filepath.Base(dir)+tempInfix) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(dir), s.Name())); err != nil {
			return fmt.Errorf("cleaning the cache: %w", err)
		}
	}
	return nil
}

// missing lists the programs in need that dir lacks.
func missing(dir string, need []string) []string {
	var names []string
	for _, name := range need {
		if checkExecutable(filepath.Join(dir, name)) != nil {
			names = append(names, name)
		}
	}
	return names
}
