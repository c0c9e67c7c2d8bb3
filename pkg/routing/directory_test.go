// SPDX-License-Identifier: Apache-2.0

package routing_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TestMoment reads each of the layouts in which the files can be mounted.
func TestMoment(t *testing.T) {
	files := map[string][]byte{
		"routing.json": []byte("{}"), "ring-a.snap": []byte("A"), "ring-a.snap.1": []byte("AA"), "ring-a.snap.2": {}, "ring-b.snap": []byte("B"),
	}
	folders := map[string]string{
		"routing": "routing.json", "a": "ring-a.snap", "a-1": "ring-a.snap.1", "a-2": "ring-a.snap.2", "b": "ring-b.snap",
	}
	layouts := map[string]func(dir string) error{
		"plain directory": func(dir string) error { return writePlain(dir, files) },
		"one volume":      func(dir string) error { return materialize.Write(dir, files) },
		"a volume for each": func(dir string) error {
			var errs []error
			for folder, name := range folders {
				errs = append(errs, materialize.Write(filepath.Join(dir, folder), map[string][]byte{name: files[name]}))
			}
			return errors.Join(errs...)
		},
	}
	for name, write := range layouts {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := write(dir); err != nil {
				t.Fatal(err)
			}
			m := routing.MomentOf(dir)
			text, shown, err := m.ReadRouting()
			if err != nil || string(text) != "{}" {
				t.Errorf("%s: %q, %v", shown, text, err)
			}
			for _, want := range []struct {
				ref     routing.Reference
				content string
			}{
				{routing.NewReference(routing.SlotA, "", "", 1), "A"},
				{routing.NewReference(routing.SlotA, "", "", 2), "AAA"},
				{routing.NewReference(routing.SlotB, "", "", 1), "B"},
			} {
				data, shown, err := m.ReadSnapshot(want.ref, int64(len(want.content)))
				if err != nil || string(data) != want.content {
					t.Errorf("%s of %+v: %q, %v", shown, want.ref, data, err)
				}
			}
			if m != routing.MomentOf(dir) {
				t.Error("without a swap the moment is another")
			}
		})
	}
}

func writePlain(dir string, files map[string][]byte) error {
	var errs []error
	for name, content := range files {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return errors.Join(errs...)
}

// TestReadSnapshotNamesTheFile: the error is about the chunk that it is in, and the limit about all of them.
func TestReadSnapshotNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	if err := writePlain(dir, map[string][]byte{"ring-a.snap": []byte("123"), "ring-a.snap.1": []byte("45"), "ring-a.snap.2": {}}); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		slot   routing.Slot
		chunks int
		limit  int64
		file   string
		want   string
	}{
		"the first is too large":    {routing.SlotA, 2, 2, "ring-a.snap", "it has 3 bytes, the limit is 2"},
		"the sum is too large":      {routing.SlotA, 2, 4, "ring-a.snap.1", "with the chunks before it, it has 5 bytes, the limit is 4"},
		"a chunk that is counted":   {routing.SlotA, 3, 9, "ring-a.snap.2", "it is empty: it is of another moment than routing.json"},
		"a chunk that is missing":   {routing.SlotA, 4, 9, "ring-a.snap.2", "it is empty"},
		"the first one of the slot": {routing.SlotB, 2, 9, "ring-b.snap", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			data, shown, err := routing.MomentOf(dir).ReadSnapshot(routing.NewReference(row.slot, "", "", row.chunks), row.limit)
			if data != nil || shown != filepath.Join(dir, row.file) || err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("%q of %s: %v", data, shown, err)
			}
		})
	}
}

// TestMomentEndsWithASwapOfAnyFolder: chunks can be mounted as volumes of their own, which are swapped one by one.
func TestMomentEndsWithASwapOfAnyFolder(t *testing.T) {
	for _, folder := range routing.Folders() {
		dir := t.TempDir()
		before := routing.MomentOf(dir)
		if err := materialize.Write(filepath.Join(dir, folder), map[string][]byte{"file": []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if before == routing.MomentOf(dir) {
			t.Errorf("the moments before and after a swap of %s are equal", folder)
		}
	}
}

// TestMomentEndsWithASwap: what is read after a swap is never taken for what was there before.
func TestMomentEndsWithASwap(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"old", "new"} {
		before := routing.MomentOf(dir)
		if err := materialize.Write(dir, map[string][]byte{"routing.json": []byte(content)}); err != nil {
			t.Fatal(err)
		}
		if content == "old" {
			continue
		}
		if text, _, err := before.ReadRouting(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading a moment that is gone: %q, %v", text, err)
		}
		if before == routing.MomentOf(dir) {
			t.Error("the moments before and after a swap are equal")
		}
	}
}

func TestReadFileRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := routing.ReadFile(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("at the limit: %q, %v", data, err)
	}
	_, err := routing.ReadFile(path, 4)
	if tooLarge := (*routing.FileTooLargeError)(nil); !errors.As(err, &tooLarge) || err.Error() != "it has 5 bytes, the limit is 4" {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := routing.ReadFile(dir, 4); !errors.Is(err, routing.ErrNotRegular) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := routing.ReadFile(filepath.Join(dir, "none"), 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}
