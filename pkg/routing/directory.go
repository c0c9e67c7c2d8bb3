// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// DataLink is the link that kubelet renames into place to change all files of a volume at once.
const DataLink = "..data"

// RoutingFolder is the subdirectory in which routing.json may lie. A chunk of a slot may lie in one that
// [Slot.ChunkFolder] names. So the ConfigMaps of a ring can be mounted as one volume or as one for each.
const RoutingFolder = "routing"

// Folders returns the names of all subdirectories that a file may lie in.
func Folders() []string {
	names := []string{RoutingFolder}
	for _, slot := range []Slot{SlotA, SlotB} {
		for chunk := range MaxChunks {
			names = append(names, slot.ChunkFolder(chunk))
		}
	}
	return names
}

// ErrNotRegular is the error of reading what is there but no regular file.
var ErrNotRegular = errors.New("not a regular file")

// FileTooLargeError is the error of reading a file that is larger than the reader takes.
type FileTooLargeError struct {
	// Size and Limit are in bytes. With chunks both are those of the whole snapshot, as far as it was looked at.
	Size, Limit int64
	// Before is how many of the bytes are in the chunks before the file.
	Before int64
}

// Error names the numbers.
func (e *FileTooLargeError) Error() string {
	if e.Before > 0 {
		return fmt.Sprintf("with the chunks before it, it has %d bytes, the limit is %d", e.Size, e.Limit)
	}
	return fmt.Sprintf("it has %d bytes, the limit is %d", e.Size, e.Limit)
}

// ErrEmptyChunk is the error of reading an empty file as a chunk that a reference counts. A chunk that is not needed is
// empty, so the file is of another moment than the reference.
var ErrEmptyChunk = errors.New("it is empty: it is of another moment than " + FileName)

// folder is a directory of files. Actual has its "..data" link followed and changes with every swap; shown is how users
// know it. Swapped says that there is, or is in the directory above, such a link.
type folder struct {
	shown, actual string
	swapped       bool
}

// Moment is where the files of a directory lie between two swaps of its volume. The link of a volume is followed once,
// when the Moment is made, so that a swap while files are read cannot mix those of two moments: a read of a moment that is
// gone fails. Two Moments of a directory are equal if no swap was between them.
type Moment struct {
	root, routing folder
	a, b          [MaxChunks]folder
}

// MomentOf returns the present moment of a directory, which need not exist.
func MomentOf(dir string) Moment {
	root := newFolder(dir, dir)
	sub := func(name string) folder {
		f := newFolder(filepath.Join(dir, name), filepath.Join(root.actual, name))
		f.swapped = f.swapped || root.swapped
		return f
	}
	m := Moment{root: root, routing: sub(RoutingFolder)}
	for chunk := range MaxChunks {
		m.a[chunk], m.b[chunk] = sub(SlotA.ChunkFolder(chunk)), sub(SlotB.ChunkFolder(chunk))
	}
	return m
}

// newFolder follows the "..data" link of dir, where it has one.
func newFolder(shown, dir string) folder {
	target, err := os.Readlink(filepath.Join(dir, DataLink))
	switch {
	case err != nil:
		return folder{shown, dir, false}
	case filepath.IsAbs(target):
		return folder{shown, target, true}
	default:
		return folder{shown, filepath.Join(dir, target), true}
	}
}

// ReadRouting returns the bytes of routing.json, and its path as a user knows it. Errors: those of [ReadFile].
func (m Moment) ReadRouting() (data []byte, shown string, err error) {
	return appendFirst(nil, FileName, MaxBytes, m.root, m.routing)
}

// ReadSnapshot returns the bytes of the snapshot that ref names, the contents of all its files one behind the other, at
// most limit of them. Shown is the path of the first file as a user knows it or, with an error, that of the offending one.
// Errors: those of [ReadFile], and [ErrEmptyChunk]. It takes memory for the snapshot once.
func (m Moment) ReadSnapshot(ref Reference, limit int64) (data []byte, shown string, err error) {
	if ref.Chunks > 1 {
		data = make([]byte, 0, m.sizeInChunks(ref, limit))
	}
	for chunk := range ref.Files() {
		before := int64(len(data))
		next, path, err := m.appendChunk(data, ref.Slot, chunk, limit-before)
		var tooLarge *FileTooLargeError
		switch {
		case errors.As(err, &tooLarge):
			return nil, path, &FileTooLargeError{Size: before + tooLarge.Size, Limit: limit, Before: before}
		case err != nil:
			return nil, path, err
		case chunk == 0:
			shown = path
		case int64(len(next)) == before:
			return nil, path, ErrEmptyChunk
		}
		data = next
	}
	return data, shown, nil
}

// sizeInChunks returns how much room a snapshot in chunks takes, at most limit and a byte: about, because the chunks are about equally
// long. A byte more than each is what says that it ends.
func (m Moment) sizeInChunks(ref Reference, limit int64) int64 {
	sub := m.a
	if ref.Slot == SlotB {
		sub = m.b
	}
	for _, f := range []folder{m.root, sub[0]} {
		if info, err := os.Stat(filepath.Join(f.actual, ref.Slot.FileName())); err == nil {
			return min((max(info.Size(), 0)+1)*int64(ref.Chunks), limit+1)
		}
	}
	return 0
}

// VolumeFile returns where the snapshot that ref names lies if it is one regular file of a volume that kubelet swaps, and its path
// as a user knows it. Nobody writes to the files of such a volume: a swap replaces all of them, so they can be mapped. It
// returns false for a plain directory, for a snapshot that is cut into chunks, and where there is no such file.
func (m Moment) VolumeFile(ref Reference) (path, shown string, ok bool) {
	if len(ref.Files()) > 1 {
		return "", "", false
	}
	sub := m.a
	if ref.Slot == SlotB {
		sub = m.b
	}
	for _, f := range []folder{m.root, sub[0]} {
		path, shown = filepath.Join(f.actual, ref.Slot.FileName()), filepath.Join(f.shown, ref.Slot.FileName())
		if info, err := os.Stat(path); err == nil {
			return path, shown, info.Mode().IsRegular() && f.swapped
		}
	}
	return "", "", false
}

// ReadChunk returns the bytes of one file of a slot, and its path as a user knows it. Errors: those of [ReadFile].
func (m Moment) ReadChunk(slot Slot, chunk int, limit int64) (data []byte, shown string, err error) {
	return m.appendChunk(nil, slot, chunk, limit)
}

func (m Moment) appendChunk(dst []byte, slot Slot, chunk int, limit int64) (data []byte, shown string, err error) {
	sub := m.a
	if slot == SlotB {
		sub = m.b
	}
	return appendFirst(dst, slot.ChunkFileName(chunk), limit, m.root, sub[chunk])
}

// appendFirst appends a file from the first of two folders that has it.
func appendFirst(dst []byte, name string, limit int64, first, second folder) (data []byte, shown string, err error) {
	shown = filepath.Join(first.shown, name)
	data, err = appendFile(dst, filepath.Join(first.actual, name), limit)
	if errors.Is(err, fs.ErrNotExist) {
		if other, otherErr := appendFile(dst, filepath.Join(second.actual, name), limit); !errors.Is(otherErr, fs.ErrNotExist) {
			shown, data, err = filepath.Join(second.shown, name), other, otherErr
		}
	}
	return data, shown, err
}

// ReadFile reads a regular file of at most limit bytes. It looks before it opens: opening a pipe would block for ever. The
// errors do not hold the path, which differs at every swap and tells a user nothing: [ErrNotRegular], a
// [FileTooLargeError], or what the operating system says, such as [fs.ErrNotExist].
func ReadFile(path string, limit int64) ([]byte, error) { return appendFile(nil, path, limit) }

func appendFile(dst []byte, path string, limit int64) ([]byte, error) {
	data, err := appendRegular(dst, path, limit)
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return data, err
}

func appendRegular(dst []byte, path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	if info.Size() > limit {
		return nil, &FileTooLargeError{Size: info.Size(), Limit: limit}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // Nothing was written, so there is nothing that closing could lose.
	have, space := len(dst), int(info.Size())+1
	if cap(dst)-have < space {
		dst = append(make([]byte, 0, have+space), dst...)
	}
	n, err := io.ReadFull(file, dst[have:have+space])
	switch {
	case err == nil:
		return nil, fmt.Errorf("it grew beyond %d bytes while it was read", info.Size())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return dst[:have+n], nil
	default:
		return nil, err
	}
}
