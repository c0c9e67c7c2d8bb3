// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAssetsFromEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	if _, err := Assets(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "etcd")) {
		t.Errorf("Assets of an empty directory = %v, want an error with the path", err)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Assets(t.Context(), t.Output()); got != dir || err != nil {
		t.Errorf("Assets = %q, %v, want %q", got, err, dir)
	}
}

// A nested module must not pass for the root, although its path starts with the root's.
func TestModuleRoot(t *testing.T) {
	root := t.TempDir()
	nested := filepath.Join(root, "hack", "controlplane")
	if err := os.MkdirAll(nested, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, path := range map[string]string{root: modulePath, nested: modulePath + "/hack/controlplane"} {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+path+"\n\ngo 1.26.0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(nested)
	got, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if !sameFile(t, got, root) {
		t.Errorf("ModuleRoot = %q, want %q", got, root)
	}

	t.Chdir(t.TempDir())
	if _, err := ModuleRoot(); err == nil {
		t.Error("ModuleRoot outside of the module succeeded")
	}
}

// sameFile compares directories whose paths may differ by a link.
func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	ia, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	ib, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(ia, ib)
}
