// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// TestOpenFile: what is mapped answers as what was built does, also after its file was replaced, and while others come and go.
func TestOpenFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ring-a.snap")
	built := mustBuild(t, featureFleet())
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(name+".new", content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	for _, content := range [][]byte{built.Snapshot(), built.Recipe()} {
		write(content)
		r, err := ring.OpenFile(name, ring.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		write([]byte("something else"))
		v, whole := mustView(t, r, "1-2"), mustView(t, built, "1-2")
		if !bytes.Equal(r.Snapshot(), content) || ring.Compare(v, whole).Total != 0 || r.ID(7) != built.ID(7) || r.Zone(7) != "" {
			t.Error("the mapped ring is another")
		}
	}
	write(built.Snapshot())
	x := uint32(0)
	for range 50 { // A ring that goes must not take with it what one that stays has mapped.
		r, err := ring.OpenFile(name, ring.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		for range 1000 {
			x += 0x9e3779b1
			got, err := r.Owner(x)
			if want, _ := built.Owner(x); got != want || err != nil {
				t.Fatalf("%08x: owner %d, %v, want %d", x, got, err, want)
			}
		}
	}
}

func TestOpenFileRefuses(t *testing.T) {
	dir := t.TempDir()
	empty, short, marker := filepath.Join(dir, "empty"), filepath.Join(dir, "short"), filepath.Join(dir, "marker")
	for name, content := range map[string][]byte{empty: nil, short: []byte("hello"), marker: ring.EmptySlot()} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var path *fs.PathError
	var format *ring.FormatError
	for name, right := range map[string]func(err error) bool{
		filepath.Join(dir, "none"): func(err error) bool { return errors.Is(err, fs.ErrNotExist) },
		dir:                        func(err error) bool { return errors.As(err, &path) && path.Path == dir },
		empty:                      func(err error) bool { return errors.As(err, &format) },
		short:                      func(err error) bool { return errors.As(err, &format) },
		marker:                     func(err error) bool { return errors.Is(err, ring.ErrEmptySlot) },
	} {
		if r, err := ring.OpenFile(name, ring.OpenOptions{}); r != nil || !right(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
