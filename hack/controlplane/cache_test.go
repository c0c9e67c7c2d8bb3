// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

const entry = "v1-test"

// newCache returns a cache whose directory does not exist yet.
func newCache(t *testing.T) *cache {
	return &cache{root: filepath.Join(t.TempDir(), "not", "yet"), notify: func(string) {}}
}

// produceAll is a build that works.
func produceAll(t *testing.T) func(context.Context, string, []string) error {
	return func(_ context.Context, dir string, names []string) error {
		writePrograms(t, dir, names...)
		return nil
	}
}

// entries lists what the cache's directory has, without lock files.
func entries(t *testing.T, c *cache) []string {
	t.Helper()
	list, err := os.ReadDir(c.root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		if filepath.Ext(e.Name()) != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestCacheInstallThenLookup(t *testing.T) {
	c := newCache(t)
	if _, err := c.lookup(bothPrograms, entry); !errors.Is(err, errUnavailable) {
		t.Errorf("lookup in an empty cache = %v, want errUnavailable", err)
	}
	dir, err := c.install(t.Context(), entry, bothPrograms, false, produceAll(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.lookup(bothPrograms, "other", entry)
	if got != dir || err != nil {
		t.Errorf("lookup = %q, %v, want %q", got, err, dir)
	}
	if got := entries(t, c); !slices.Equal(got, []string{entry}) {
		t.Errorf("the cache has %q, want the entry alone", got)
	}
}

func TestCacheInstallFailures(t *testing.T) {
	failed := errors.New("failed")
	for name, produce := range map[string]func(context.Context, string, []string) error{
		"an error": func(_ context.Context, dir string, _ []string) error {
			writePrograms(t, dir, etcd, apiServer)
			return failed
		},
		"a program short": func(_ context.Context, dir string, _ []string) error {
			writePrograms(t, dir, etcd)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t)
			if _, err := c.install(t.Context(), entry, bothPrograms, false, produce); err == nil {
				t.Fatal("install succeeded")
			}
			if left := missing(filepath.Join(c.root, entry), bothPrograms); !slices.Equal(left, bothPrograms) {
				t.Errorf("the entry lacks %q, want all: it is half-made", left)
			}
			if got := entries(t, c); !slices.Equal(got, []string{entry}) {
				t.Errorf("the cache has %q, want no temporary directory", got)
			}
		})
	}
}

func TestCacheInstallProducesOnlyWhatIsMissing(t *testing.T) {
	c := newCache(t)
	writePrograms(t, filepath.Join(c.root, entry), etcd, apiServer)
	var asked []string
	produce := func(_ context.Context, dir string, names []string) error {
		asked = names
		writePrograms(t, dir, names...)
		return nil
	}
	need := append(slices.Clone(bothPrograms), kubectl)
	if _, err := c.install(t.Context(), entry, need, false, produce); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(asked, []string{kubectl}) {
		t.Errorf("produced %q, want kubectl alone", asked)
	}
	if _, err := c.install(t.Context(), entry, need, true, produce); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(asked, need) {
		t.Errorf("with renew, produced %q, want %q", asked, need)
	}
}

func TestCacheInstallRemovesLeftovers(t *testing.T) {
	c := newCache(t)
	writePrograms(t, filepath.Join(c.root, entry+tempInfix+"123"), etcd)
	writePrograms(t, filepath.Join(c.root, "other"+tempInfix+"123"), etcd) // Somebody may work in there.
	if _, err := c.install(t.Context(), entry, bothPrograms, false, produceAll(t)); err != nil {
		t.Fatal(err)
	}
	if got, want := entries(t, c), []string{"other" + tempInfix + "123", entry}; !slices.Equal(got, want) {
		t.Errorf("the cache has %q, want %q", got, want)
	}
}

func TestCacheInstallOnceForAll(t *testing.T) {
	c := newCache(t)
	var builds atomic.Int32
	produce := func(_ context.Context, dir string, names []string) error {
		builds.Add(1)
		writePrograms(t, dir, names...)
		return nil
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.install(t.Context(), entry, bothPrograms, false, produce); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("%d builds for 8 callers, want 1", n)
	}
}

func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lockFile(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted wait = %v, want context.Canceled", err)
	}

	// The lock is given back when the second caller has seen that it is taken.
	again, err := lockFile(t.Context(), path, unlock)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestCacheRoot(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	got, err := options{}.cacheRoot()
	if err != nil {
		t.Fatal(err)
	}
	if rel, err := filepath.Rel(home, got); err != nil || filepath.Base(got) != "controlplane" || !filepath.IsLocal(rel) {
		t.Errorf("cacheRoot = %q, want ringwright/controlplane below %q", got, home)
	}

	t.Setenv("HOME", "")
	if _, err := (options{}).cacheRoot(); err == nil {
		t.Error("cacheRoot without HOME succeeded")
	}
	if got, err := (options{cacheDir: "/x"}).cacheRoot(); got != "/x" || err != nil {
		t.Errorf("cacheRoot with -cache-dir = %q, %v", got, err)
	}
}
