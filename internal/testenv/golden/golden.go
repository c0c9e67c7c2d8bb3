// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test got with a file that was reviewed and committed.
// Run the tests of one package with -update to write its files:
//
//	go test ./internal/plan -update
//
// The flag exists only in tests that import this package, so name the packages; with ./...
// the others fail. Only tests may import it, as it defines a flag.
package golden

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Assert fails the test when got is not the content of the file at path, which is
// relative to the package's directory and by custom in testdata. It shows a
// difference by lines for text, and the first different byte for anything else.
// With -update it writes the file, and its directory if need be.
func Assert(t testing.TB, path string, got []byte) {
	t.Helper()
	if *update {
		if err := write(path, got); err != nil {
			t.Fatalf("updating a golden file: %v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Errorf("golden file %s does not exist; run this package's tests with -update and review it", path)
	case err != nil:
		t.Errorf("reading a golden file: %v", err)
	case !bytes.Equal(want, got):
		t.Errorf("different from golden file %s; if that is intended, run this package's tests with -update\n%s",
			path, difference(want, got))
	}
}

// write keeps a file that has the content already, and so its modification time.
func write(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// difference describes how got differs from want.
func difference(want, got []byte) string {
	if isText(want) && isText(got) {
		return "(-golden +got):\n" + cmp.Diff(string(want), string(got))
	}
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	return fmt.Sprintf("golden has %d bytes, got %d; the first difference is at byte %d: golden %s, got %s",
		len(want), len(got), at, hexAt(want, at), hexAt(got, at))
}

// hexAt shows a few bytes of data from at on.
func hexAt(data []byte, at int) string {
	const shown = 16
	if at >= len(data) {
		return "ends"
	}
	return fmt.Sprintf("[% x]", data[at:min(at+shown, len(data))])
}

func isText(data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsRune(data, 0)
}
