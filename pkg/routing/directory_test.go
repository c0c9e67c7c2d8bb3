// SPDX-License-Identifier: Apache-2.0

package routing_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TestMoment reads each of the layouts in which the files can be mounted.
func TestMoment(t *testing.T) {
	files := map[string][]byte{"routing.json": []byte("{}"), "ring-a.snap": []byte("A"), "ring-b.snap": []byte("B")}
	layouts := map[string]func(dir string) error{
		"plain directory": func(dir string) error {
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		"one volume": func(dir string) error { return materialize.Write(dir, files) },
		"three volumes": func(dir string) error {
			return errors.Join(
				materialize.Write(filepath.Join(dir, "routing"), map[string][]byte{"routing.json": files["routing.json"]}),
				materialize.Write(filepath.Join(dir, "a"), map[string][]byte{"ring-a.snap": files["ring-a.snap"]}),
				materialize.Write(filepath.Join(dir, "b"), map[string][]byte{"ring-b.snap": files["ring-b.snap"]}))
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
			for slot, want := range map[routing.Slot]string{routing.SlotA: "A", routing.SlotB: "B"} {
				data, shown, err := m.ReadSlot(slot, 1)
				if err != nil || string(data) != want {
					t.Errorf("%s: %q, %v", shown, data, err)
				}
			}
			if m != routing.MomentOf(dir) {
				t.Error("without a swap the moment is another")
			}
		})
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
