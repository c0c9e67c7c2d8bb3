// SPDX-License-Identifier: Apache-2.0

//go:build linux

package materialize

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// side is one writer with its directory, and what was seen there after the latest step.
type side struct {
	write  writer
	dir    string
	notify int
	inodes map[string]string
	// tree is what the directory holds: modes, and contents or the targets of links.
	tree map[string]string
	// kept are the paths that are still the same inode as before the step.
	kept []string
	// events are those of a watch on the directory in their order, where those of a phase have no order.
	events []string
}

func newSide(t *testing.T, write writer) *side {
	t.Helper()
	s := &side{write: write, dir: t.TempDir()}
	var err error
	if s.notify, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(s.notify) })
	const events = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	if _, err := unix.InotifyAddWatch(s.notify, s.dir, events); err != nil {
		t.Fatal(err)
	}
	return s
}

// step writes the files and looks at what became of it.
func (s *side) step(t *testing.T, files map[string][]byte) {
	t.Helper()
	if err := s.write(s.dir, files); err != nil {
		t.Fatal(err)
	}
	before := s.inodes
	s.look(t)
	s.kept = nil
	for name, inode := range s.inodes {
		if before[name] == inode {
			s.kept = append(s.kept, name)
		}
	}
	slices.Sort(s.kept)
	s.events = s.read(t)
}

var stamp = regexp.MustCompile(`\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+`)

func withoutStamp(text string) string { return stamp.ReplaceAllString(text, "..STAMP") }

func (s *side) look(t *testing.T) {
	t.Helper()
	s.tree, s.inodes = map[string]string{}, map[string]string{}
	err := filepath.WalkDir(s.dir, func(full string, entry fs.DirEntry, err error) error {
		if err != nil || full == s.dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, content := withoutStamp(strings.TrimPrefix(full, s.dir+"/")), ""
		switch {
		case entry.Type() == fs.ModeSymlink:
			content, err = os.Readlink(full)
		case !entry.IsDir():
			var data []byte
			data, err = os.ReadFile(full)
			content = string(data)
		}
		if _, twice := s.tree[name]; twice {
			return fmt.Errorf("%s is there twice: an old directory is left", name)
		}
		s.tree[name] = fmt.Sprintf("%v %s", info.Mode(), withoutStamp(content))
		stat := info.Sys().(*syscall.Stat_t)
		// A number is used again, with another time of change.
		s.inodes[name] = fmt.Sprintf("%d %d.%d", stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the events since the last call. Links are created and removed in any order, so that each row of such events is
// sorted.
func (s *side) read(t *testing.T) []string {
	t.Helper()
	var list []string
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Read(s.notify, buffer)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for rest := buffer[:n]; len(rest) > 0; {
			mask, length := binary.NativeEndian.Uint32(rest[4:]), binary.NativeEndian.Uint32(rest[12:])
			name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length], "\x00"))
			list = append(list, describe(mask)+" "+withoutStamp(name))
			rest = rest[unix.SizeofInotifyEvent+length:]
		}
	}
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && ofLinks(list[from]) && ofLinks(list[to]) && list[from][:6] == list[to][:6] {
			to++
		}
		slices.Sort(list[from:to])
		from = to
	}
	return list
}

func ofLinks(event string) bool { return !strings.Contains(event, " ..") }

func describe(mask uint32) string {
	for bit, name := range map[uint32]string{
		unix.IN_CREATE: "create", unix.IN_DELETE: "delete", unix.IN_MOVED_FROM: "moved from", unix.IN_MOVED_TO: "moved to",
	} {
		if mask&bit != 0 {
			return name
		}
	}
	return fmt.Sprintf("%#x", mask)
}
