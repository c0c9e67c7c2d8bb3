// SPDX-License-Identifier: Apache-2.0

package listen_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/listen"
)

func TestUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := listen.Unix(t.Context(), path, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := listen.Unix(t.Context(), path, 0o660); err == nil || !strings.Contains(err.Error(), "another process listens on it") {
		t.Errorf("a second one: %v", err)
	}
	dial(t, l)
	conn, err := l.Accept() // The look of the second one.
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
}

func TestUnixReplacesStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close() // As a killed process does.
	l, err := listen.Unix(t.Context(), path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	dial(t, l)
	_ = l.Close()
}

func TestUnixRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	longest := filepath.Join(dir, strings.Repeat("s", listen.MaxUnixPathBytes-len(dir)-1))
	for name, row := range map[string]struct{ path, want string }{
		"a file":         {file, "is there and no socket"},
		"a directory":    {dir, "is there and no socket"},
		"no directory":   {filepath.Join(dir, "none", "s"), "no such file or directory"},
		"a path too far": {longest + "s", "has 104 bytes, the limit is 103"},
	} {
		if _, err := listen.Unix(t.Context(), row.path, 0o660); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file: %q, %v", text, err)
	}
	l, err := listen.Unix(t.Context(), longest, 0o660)
	if err != nil {
		t.Fatalf("the longest path: %v", err)
	}
	_ = l.Close()
}
