// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"io/fs"
	"runtime"
)

// OpenFile opens the snapshot in a file, as [OpenWith] does. Where the platform can, the file is mapped and not copied: a
// ring takes no memory of the process then beside what is kept for each backend, and none at all for points that another
// process has mapped too. It is unmapped when the ring and its views are no longer reachable.
//
// A file that is mapped must not be changed or cut while the ring is used; to replace it, rename another one over it, as
// kubelet and this project's writers do. What [Ring.Snapshot] returns is valid as long as the ring is reachable. Errors: an
// [fs.PathError], or those of OpenWith.
func OpenFile(name string, o OpenOptions) (*Ring, error) {
	m, err := mapFile(name)
	if err != nil {
		return nil, err
	}
	r, err := OpenWith(m.data, o)
	if err != nil {
		m.release()
		return nil, err
	}
	runtime.AddCleanup(r, func(m mapping) { m.release() }, m)
	return r, nil
}

// mapping is the content of a file.
type mapping struct {
	data   []byte
	mapped bool
}

func pathError(name string, err error) error {
	return &fs.PathError{Op: "map", Path: name, Err: err}
}

var errNotRegular = fmt.Errorf("%w: it is not a regular file", fs.ErrInvalid)
