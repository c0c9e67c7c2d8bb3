// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var bothPrograms = []string{etcd, apiServer}

// writePrograms puts executable stand-ins into dir.
func writePrograms(t *testing.T, dir string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSourcesOrder(t *testing.T) {
	for from, want := range map[string][]string{
		fromAuto:         {assetsVariable, "cache", "setup-envtest", "build from source"},
		fromCache:        {"cache"},
		fromSetupEnvtest: {"setup-envtest"},
		fromSource:       {"build from source"},
	} {
		var got []string
		for _, s := range sources(options{from: from}, pins{}, &cache{}, nil) {
			got = append(got, s.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("-from %s asks %q, want %q", from, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	broken := errors.New("broken")
	offer := func(name, dir string, err error) source {
		return source{name, func(context.Context, []string) (string, error) { return dir, err }}
	}
	tests := map[string]struct {
		list    []source
		want    string
		wantErr error
		notes   []string
	}{
		"the first that has it": {
			list: []source{offer("a", "/a", nil), offer("b", "/b", nil)},
			want: "/a",
		},
		"an unset one is passed over silently": {
			list: []source{offer("a", "", errUnset), offer("b", "/b", nil)},
			want: "/b",
		},
		"an unavailable one is passed over with a note": {
			list:  []source{offer("a", "", fmt.Errorf("no answer: %w", errUnavailable)), offer("b", "/b", nil)},
			want:  "/b",
			notes: []string{"a: no answer: not available; trying b"},
		},
		"a broken one ends the search": {
			list:    []source{offer("a", "", broken), offer("b", "/b", nil)},
			wantErr: broken,
		},
		"none": {
			list:    []source{offer("a", "", errUnavailable)},
			wantErr: errUnavailable,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var notes []string
			got, err := resolve(t.Context(), tc.list, bothPrograms, func(s string) { notes = append(notes, s) })
			if got != tc.want || !errors.Is(err, tc.wantErr) {
				t.Errorf("resolve = %q, %v, want %q, %v", got, err, tc.want, tc.wantErr)
			}
			if !slices.Equal(notes, tc.notes) {
				t.Errorf("notes = %q, want %q", notes, tc.notes)
			}
		})
	}
}

func TestFromEnvironment(t *testing.T) {
	full, partial, odd := t.TempDir(), t.TempDir(), t.TempDir()
	writePrograms(t, full, etcd, apiServer)
	writePrograms(t, partial, etcd)
	writePrograms(t, odd, etcd)
	if err := os.WriteFile(filepath.Join(odd, apiServer), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(odd, kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		dir     string
		need    []string
		wantErr string // Empty for success.
	}{
		"complete":       {dir: full, need: bothPrograms},
		"unset":          {dir: "", need: bothPrograms, wantErr: "not set"},
		"relative":       {dir: "bin", need: bothPrograms, wantErr: `"bin" must be an absolute path`},
		"missing":        {dir: partial, need: bothPrograms, wantErr: filepath.Join(partial, apiServer) + ": no such file"},
		"not executable": {dir: odd, need: bothPrograms, wantErr: filepath.Join(odd, apiServer) + " is not executable"},
		"a directory":    {dir: odd, need: []string{kubectl}, wantErr: filepath.Join(odd, kubectl) + " is not a file"},
		"kubectl too":    {dir: full, need: []string{etcd, kubectl}, wantErr: filepath.Join(full, kubectl)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := fromEnvironment(tc.dir, tc.need)
			if tc.wantErr == "" {
				if got != tc.dir || err != nil {
					t.Errorf("fromEnvironment = %q, %v, want %q", got, err, tc.dir)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error = %v, want one with %q", err, tc.wantErr)
			}
			if tc.dir != "" && errors.Is(err, errUnavailable) {
				t.Errorf("%v lets the search go on", err)
			}
		})
	}
}

func TestFromEnvironmentFollowsLinks(t *testing.T) {
	target, dir := t.TempDir(), t.TempDir()
	writePrograms(t, target, etcd)
	if err := os.Symlink(filepath.Join(target, etcd), filepath.Join(dir, etcd)); err != nil {
		t.Fatal(err)
	}
	if _, err := fromEnvironment(dir, []string{etcd}); err != nil {
		t.Error(err)
	}
}
