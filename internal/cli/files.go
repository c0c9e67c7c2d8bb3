// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ringwright/ringwright/pkg/routing"
)

// maxSnapshotBytes bounds what is read of a snapshot file: a ring of 64 Mi points, the most that is built by default,
// takes a quarter of it.
const maxSnapshotBytes = 1 << 30

// snapshotFile is a source of a snapshot alone.
type snapshotFile struct{ path string }

func (s snapshotFile) read(context.Context, extent) (*publication, error) {
	data, err := routing.ReadFile(s.path, maxSnapshotBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return &publication{origin: "file " + s.path, bare: &artifact{path: s.path, data: data}}, nil
}

// directory is a source of the files of a mounted volume, or of those that "build" wrote.
type directory struct{ path string }

func (s directory) read(_ context.Context, what extent) (*publication, error) {
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
		m := routing.MomentOf(s.path)
		p := readMoment(s.path, m, what)
		if try == tries || m == routing.MomentOf(s.path) {
			return p, nil
		}
	}
}

// readMoment reads the files of a moment.
func readMoment(path string, m routing.Moment, what extent) *publication {
	p := &publication{origin: "directory " + path, routing: newArtifact(m.ReadRouting())}
	p.slots = map[routing.Slot]*artifact{}
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		ref, named := p.reference(slot)
		if what.has(named) {
			p.slots[slot] = newArtifact(m.ReadSnapshot(ref, maxSnapshotBytes))
		}
		for chunk := len(ref.Files()); what == everything && chunk < routing.MaxChunks; chunk++ {
			data, shown, err := m.ReadChunk(slot, chunk, maxSnapshotBytes)
			if !errors.Is(err, fs.ErrNotExist) { // How many there shall be, the files do not say.
				p.spares = append(p.spares, newArtifact(data, shown, err))
			}
		}
	}
	return p
}

func newArtifact(data []byte, shown string, err error) *artifact {
	a := &artifact{path: shown, data: data}
	if err != nil {
		a.err = fmt.Errorf("%s: %w", shown, err)
	}
	return a
}
