// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ringwright/ringwright/pkg/routing"
)

// dataLink is the link that kubelet renames into place to change all files of a volume at once.
const dataLink = "..data"

// routingFolder is the subdirectory in which routing.json may lie. The snapshot of a slot may lie in one that is named as
// the slot is. So the three ConfigMaps of a ring can be mounted as one volume or as three.
const routingFolder = "routing"

// folder is a directory of files. Actual has its "..data" link followed and changes with every swap; shown is how users
// know it.
type folder struct{ shown, actual string }

// moment is where the files of one load lie. A volume's link is followed once, when the moment is made, so that a swap
// during the load cannot mix files of two moments.
type moment struct{ root, routing, a, b folder }

// momentOf returns the present moment of a directory, which need not exist.
func momentOf(dir string) moment {
	root := folder{dir, followData(dir)}
	sub := func(name string) folder {
		return folder{filepath.Join(dir, name), followData(filepath.Join(root.actual, name))}
	}
	return moment{root, sub(routingFolder), sub(string(routing.SlotA)), sub(string(routing.SlotB))}
}

// followData returns where "..data" in dir leads to, or dir where there is no such link.
func followData(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil {
		return dir
	}
	if filepath.IsAbs(target) {
		return target
	}
	return filepath.Join(dir, target)
}

// readRouting returns the bytes of routing.json. The error is a LoadError, as it is of every function here.
func (m moment) readRouting() (data []byte, shown string, err error) {
	return m.readFirst(routing.FileName, routing.MaxBytes, m.root, m.routing)
}

// readSlot returns the bytes of a slot's file.
func (m moment) readSlot(slot routing.Slot, limit int64) (data []byte, shown string, err error) {
	sub := m.a
	if slot == routing.SlotB {
		sub = m.b
	}
	return m.readFirst(slot.FileName(), limit, m.root, sub)
}

// readFirst reads a file from the first of two folders that has it.
func (m moment) readFirst(name string, limit int64, first, second folder) (data []byte, shown string, err error) {
	shown = filepath.Join(first.shown, name)
	data, err = readFile(filepath.Join(first.actual, name), limit)
	if errors.Is(err, fs.ErrNotExist) {
		if other, otherErr := readFile(filepath.Join(second.actual, name), limit); !errors.Is(otherErr, fs.ErrNotExist) {
			shown, data, err = filepath.Join(second.shown, name), other, otherErr
		}
	}
	var loadError *LoadError
	switch {
	case err == nil:
		return data, shown, nil
	case errors.As(err, &loadError):
		loadError.File = shown
		return nil, shown, loadError
	case errors.Is(err, fs.ErrNotExist):
		return nil, shown, &LoadError{Reason: ReasonMissing, File: shown, Err: fs.ErrNotExist}
	default:
		// A PathError holds the path of a moment, which differs at every swap and tells a user nothing.
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return nil, shown, &LoadError{Reason: ReasonUnreadable, File: shown, Err: err}
	}
}

var errNotRegular = errors.New("not a regular file")

// readFile reads a regular file of at most limit bytes. It looks before it opens: opening a pipe would block for ever.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if info.Size() > limit {
		return nil, tooLarge(info.Size(), limit)
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

func tooLarge(size, limit int64) error {
	return &LoadError{
		Reason: ReasonTooLarge,
		Value:  strconv.FormatInt(size, 10),
		Limit:  strconv.FormatInt(limit, 10),
		Err:    fmt.Errorf("it has %d bytes, the limit is %d", size, limit),
	}
}
