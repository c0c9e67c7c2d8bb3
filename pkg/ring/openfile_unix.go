// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ring

import (
	"math"
	"os"
	"syscall"
)

// mapFile maps a regular file for reading. An empty one cannot be mapped and needs not be.
func mapFile(name string) (mapping, error) {
	info, err := os.Stat(name) // Before it is opened: opening a pipe would wait for a writer.
	if err != nil {
		return mapping{}, err
	}
	if !info.Mode().IsRegular() {
		return mapping{}, pathError(name, errNotRegular)
	}
	file, err := os.Open(name)
	if err != nil {
		return mapping{}, err
	}
	defer func() { _ = file.Close() }() // A mapping stays when its file is closed, and nothing was written.
	if info, err = file.Stat(); err != nil {
		return mapping{}, err
	}
	switch size := info.Size(); {
	case !info.Mode().IsRegular():
		return mapping{}, pathError(name, errNotRegular)
	case size == 0:
		return mapping{}, nil
	case size > math.MaxInt:
		return mapping{}, pathError(name, syscall.EFBIG)
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return mapping{}, pathError(name, err)
	}
	return mapping{data: data, mapped: true}, nil
}

func (m mapping) release() {
	if m.mapped {
		_ = syscall.Munmap(m.data) // It fails for what is no mapping only.
	}
}
