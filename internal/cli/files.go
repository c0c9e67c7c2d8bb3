// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ringwright/ringwright/pkg/routing"
)

// dataLink is the link that kubelet renames to change all files of a volume at once.
const dataLink = "..data"

// maxSnapshotBytes bounds what is read of a snapshot file: a ring of 64 Mi points, the most that is built by default,
// takes a quarter of it.
const maxSnapshotBytes = 1 << 30

// snapshotFile is a source of a snapshot alone.
type snapshotFile struct{ path string }

func (s snapshotFile) read(context.Context, bool) (*publication, error) {
	data, err := readFile(s.path, maxSnapshotBytes)
	if err != nil {
		return nil, err
	}
	return &publication{origin: "file " + s.path, bare: &artifact{path: s.path, data: data}}, nil
}

// directory is a source of the files of a mounted volume, or of those that "build" wrote.
type directory struct{ path string }

func (s directory) read(_ context.Context, whole bool) (*publication, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory; for a snapshot file there is --snapshot", s.path)
	}
	// A swap takes the files of the moment before away, so a read that saw one starts again.
	const tries = 4
	for try := 1; ; try++ {
		m := momentOf(s.path)
		p := m.read(whole)
		if try == tries || m == momentOf(s.path) {
			return p, nil
		}
	}
}

// folder is a directory of files: as the user knows it, and with its link followed.
type folder struct{ shown, actual string }

// moment is where the files lie between two swaps. The three ConfigMaps can be mounted as one volume, or as three in the
// folders routing, a and b.
type moment struct{ root, routing, a, b folder }

func momentOf(path string) moment {
	root := folder{path, followData(path)}
	sub := func(name string) folder {
		return folder{filepath.Join(path, name), followData(filepath.Join(root.actual, name))}
	}
	return moment{root, sub("routing"), sub(string(routing.SlotA)), sub(string(routing.SlotB))}
}

// followData returns where "..data" leads to, or path itself where there is no such link.
func followData(path string) string {
	target, err := os.Readlink(filepath.Join(path, dataLink))
	if err != nil {
		return path
	}
	if filepath.IsAbs(target) {
		return target
	}
	return filepath.Join(path, target)
}

func (m moment) read(whole bool) *publication {
	p := &publication{origin: "directory " + m.root.shown, routing: m.find(routing.FileName, m.routing, routing.MaxBytes)}
	p.slots = map[routing.Slot]*artifact{}
	for slot, sub := range map[routing.Slot]folder{routing.SlotA: m.a, routing.SlotB: m.b} {
		if whole || p.names(slot) {
			p.slots[slot] = m.find(slot.FileName(), sub, maxSnapshotBytes)
		}
	}
	return p
}

// find reads a file from the root or, where it has none of that name, from a folder of its own.
func (m moment) find(name string, sub folder, limit int64) *artifact {
	shown := m.root
	data, err := readFile(filepath.Join(m.root.actual, name), limit)
	if errors.Is(err, fs.ErrNotExist) {
		other, otherErr := readFile(filepath.Join(sub.actual, name), limit)
		if !errors.Is(otherErr, fs.ErrNotExist) {
			shown, data, err = sub, other, otherErr
		}
	}
	a := &artifact{path: filepath.Join(shown.shown, name), data: data}
	var pathError *fs.PathError
	switch {
	case errors.As(err, &pathError): // It holds the path of a moment, which tells a user nothing.
		a.err = fmt.Errorf("%s: %w", a.path, pathError.Err)
	default:
		a.err = err
	}
	return a
}

// readFile reads a regular file of at most limit bytes. It looks before it opens: opening a pipe would block for ever.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d", path, info.Size(), limit)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // Nothing was written, so there is nothing that closing could lose.
	return io.ReadAll(io.LimitReader(file, limit))
}
