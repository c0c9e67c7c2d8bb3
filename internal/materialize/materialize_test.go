// SPDX-License-Identifier: Apache-2.0

package materialize_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/internal/materialize"
)

// tree returns what a directory holds: files by content, links as "-> target" with the time replaced, directories as "/".
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	stamp := dataDir(t, dir)
	err := filepath.WalkDir(dir, func(full string, entry fs.DirEntry, err error) error {
		if err != nil || full == dir {
			return err
		}
		name := strings.Replace(strings.TrimPrefix(full, dir+"/"), stamp, "..STAMP", 1)
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(full)
			found[name] = "-> " + strings.Replace(target, stamp, "..STAMP", 1)
			return err
		case entry.IsDir():
			found[name] = "/"
			return nil
		}
		data, err := os.ReadFile(full)
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func dataDir(t *testing.T, dir string) string {
	t.Helper()
	target, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func write(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	if err := materialize.Write(dir, files); err != nil {
		t.Fatal(err)
	}
}

func TestWriteLaysFilesOutAsKubelet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	write(t, dir, map[string][]byte{"one": []byte("1"), "sub/two": []byte("2"), "sub/three": []byte("3")})
	want := map[string]string{
		"..data": "-> ..STAMP", "..STAMP": "/", "..STAMP/one": "1", "..STAMP/sub": "/", "..STAMP/sub/two": "2",
		"..STAMP/sub/three": "3", "one": "-> ..data/one", "sub": "-> ..data/sub",
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("directory (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(dataDir(t, dir), "..20") {
		t.Errorf("the data directory is %s, not named by its time", dataDir(t, dir))
	}
	info, err := os.Stat(filepath.Join(dir, "..data"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode of the data directory: %v, %v, want 0755", info.Mode(), err)
	}
}

func TestWriteReplacesEverything(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"gone": []byte("1"), "kept": []byte("1"), "sub/gone": nil})
	if err := os.Symlink("elsewhere", filepath.Join(dir, "..data_tmp")); err != nil { // A writer died before its rename.
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "foreign"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string][]byte{"kept": []byte("2"), "new": nil})
	want := map[string]string{
		"..data": "-> ..STAMP", "..STAMP": "/", "..STAMP/kept": "2", "..STAMP/new": "", "kept": "-> ..data/kept",
		"new": "-> ..data/new", "foreign": "",
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("directory (-want +got):\n%s", diff)
	}
}

func TestWriteLeavesEqualContentAlone(t *testing.T) {
	dir := t.TempDir()
	files := map[string][]byte{"one": []byte("1"), "sub/two": []byte("2")}
	write(t, dir, files)
	before := dataDir(t, dir)
	write(t, dir, files)
	if after := dataDir(t, dir); after != before {
		t.Errorf("the same files were written again, from %s to %s", before, after)
	}
	for name, changed := range map[string]map[string][]byte{
		"content": {"one": []byte("x"), "sub/two": []byte("2")},
		"fewer":   {"one": []byte("x")},
		"more":    {"one": []byte("x"), "two": nil},
	} {
		before := dataDir(t, dir)
		write(t, dir, changed)
		if dataDir(t, dir) == before {
			t.Errorf("%s: nothing was written", name)
		}
	}
}

func TestWriteRefusesPaths(t *testing.T) {
	for name, path := range map[string]string{
		"empty": "", "absolute": "/a", "up": "../a", "hidden as data": "..data", "not shortest": "a//b", "up within": "a/../../b",
		"dot": ".", "long": "a/" + strings.Repeat("b", 256), "deep": strings.Repeat("d/", 2047) + "ddd",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "volume")
			if err := materialize.Write(dir, map[string][]byte{"good": nil, path: nil}); err == nil {
				t.Fatalf("%q was written", path)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("the directory was created")
			}
		})
	}
	if err := materialize.Write(t.TempDir(), map[string][]byte{strings.Repeat("b", 255): nil}); err != nil {
		t.Errorf("255 bytes: %v", err)
	}
}

// TestWriteMendsLinks: a call that was killed before it had linked the files is made good by the next, although nothing
// has changed.
func TestWriteMendsLinks(t *testing.T) {
	dir := t.TempDir()
	files := map[string][]byte{"routing.json": []byte("{}")}
	write(t, dir, files)
	link := filepath.Join(dir, "routing.json")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	write(t, dir, files)
	if got, err := os.ReadFile(link); err != nil || string(got) != "{}" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestWriteRefusesWhatIsInTheWay: a file that is no link of ours would hide what was written.
func TestWriteRefusesWhatIsInTheWay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "routing.json"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := materialize.Write(dir, map[string][]byte{"routing.json": []byte("{}")}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want that the file exists", err)
	}
}

// TestSweep: what a killed writer left goes, and nothing that is in use or somebody else's.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string][]byte{"one": []byte("1")})
	want := tree(t, dir)
	for _, name := range []string{"..2026_01_31_12_00_00.123456789", "..mine", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := materialize.Sweep(dir); err != nil {
		t.Fatal(err)
	}
	want["..mine"], want["..mine/sub"], want["other"], want["other/sub"] = "/", "/", "/", "/"
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("directory (-want +got):\n%s", diff)
	}
	if err := materialize.Sweep(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a directory that does not exist: %v", err)
	}
}
