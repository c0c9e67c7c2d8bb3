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

// RoutingFolder is the subdirectory in which routing.json may lie. The snapshot of a slot may lie in one that is named as
// the slot is. So the three ConfigMaps of a ring can be mounted as one volume or as three.
const RoutingFolder = "routing"

// ErrNotRegular is the error of reading what is there but no regular file.
var ErrNotRegular = errors.New("not a regular file")

// FileTooLargeError is the error of reading a file that is larger than the reader takes.
type FileTooLargeError struct {
	// Size and Limit are in bytes.
	Size, Limit int64
}

// Error names both numbers.
func (e *FileTooLargeError) Error() string {
	return fmt.Sprintf("it has %d bytes, the limit is %d", e.Size, e.Limit)
}

// folder is a directory of files. Actual has its "..data" link followed and changes with every swap; shown is how users
// know it.
type folder struct{ shown, actual string }

// Moment is where the files of a directory lie between two swaps of its volume. The link of a volume is followed once,
// when the Moment is made, so that a swap while files are read cannot mix those of two moments: a read of a moment that is
// gone fails. Two Moments of a directory are equal if no swap was between them.
type Moment struct{ root, routing, a, b folder }

// MomentOf returns the present moment of a directory, which need not exist.
func MomentOf(dir string) Moment {
	root := folder{dir, followData(dir)}
	sub := func(name string) folder {
		return folder{filepath.Join(dir, name), followData(filepath.Join(root.actual, name))}
	}
	return Moment{root, sub(RoutingFolder), sub(string(SlotA)), sub(string(SlotB))}
}

// followData returns where "..data" in dir leads to, or dir where there is no such link.
func followData(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, DataLink))
	if err != nil {
		return dir
	}
	if filepath.IsAbs(target) {
		return target
	}
	return filepath.Join(dir, target)
}

// ReadRouting returns the bytes of routing.json, and its path as a user knows it. Errors: those of [ReadFile].
func (m Moment) ReadRouting() (data []byte, shown string, err error) {
	return readFirst(FileName, MaxBytes, m.root, m.routing)
}

// ReadSlot returns the bytes of a slot's file, at most limit of them, and its path as a user knows it. Errors: those of
// [ReadFile].
func (m Moment) ReadSlot(slot Slot, limit int64) (data []byte, shown string, err error) {
	sub := m.a
	if slot == SlotB {
		sub = m.b
	}
	return readFirst(slot.FileName(), limit, m.root, sub)
}

// readFirst reads a file from the first of two folders that has it.
func readFirst(name string, limit int64, first, second folder) (data []byte, shown string, err error) {
	shown = filepath.Join(first.shown, name)
	data, err = ReadFile(filepath.Join(first.actual, name), limit)
	if errors.Is(err, fs.ErrNotExist) {
		if other, otherErr := ReadFile(filepath.Join(second.actual, name), limit); !errors.Is(otherErr, fs.ErrNotExist) {
			shown, data, err = filepath.Join(second.shown, name), other, otherErr
		}
	}
	return data, shown, err
}

// ReadFile reads a regular file of at most limit bytes. It looks before it opens: opening a pipe would block for ever. The
// errors do not hold the path, which differs at every swap and tells a user nothing: [ErrNotRegular], a
// [FileTooLargeError], or what the operating system says, such as [fs.ErrNotExist].
func ReadFile(path string, limit int64) ([]byte, error) {
	data, err := readRegular(path, limit)
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return data, err
}

func readRegular(path string, limit int64) ([]byte, error) {
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
	data := make([]byte, info.Size()+1)
	n, err := io.ReadFull(file, data)
	switch {
	case err == nil:
		return nil, fmt.Errorf("it grew beyond %d bytes while it was read", info.Size())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return data[:n], nil
	default:
		return nil, err
	}
}
