// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// BuildOutcome says what "build" did to its directory.
type BuildOutcome string

const (
	// BuildCreated means that the directory had no ring, or --force replaced what was no ring of this name.
	BuildCreated BuildOutcome = "Created"
	// BuildUpdated means that it had another ring or other addresses, so the generation grew, or another number of chunks.
	BuildUpdated BuildOutcome = "Updated"
	// BuildRestored means that a snapshot had been edited or deleted, and is again what routing.json names.
	BuildRestored BuildOutcome = "Restored"
	// BuildUnchanged means that it had these bytes already, and nothing was written.
	BuildUnchanged BuildOutcome = "Unchanged"
)

// outputNames are the names of all files that a ring can have.
func outputNames() []string {
	names := []string{routing.FileName}
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		for chunk := range routing.MaxChunks {
			names = append(names, slot.ChunkFileName(chunk))
		}
	}
	return names
}

// outputDir is a directory that a ring is built into, with what it held before; what was not there has no entry.
type outputDir struct {
	path string
	held map[string][]byte
	// generation is that of the routing file that was held, stable what it says of the ring; zero where there is none, or
	// none that counts.
	generation int64
	stable     routing.Reference
}

// openOutputDir reads what is there and, unless forced, refuses to replace anything that was not built for this ring.
func openOutputDir(path string, ref plan.Ref, force bool) (*outputDir, error) {
	d := &outputDir{path: path, held: map[string][]byte{}}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", path)
	}
	if _, err := os.Lstat(filepath.Join(path, routing.DataLink)); err == nil {
		return nil, fmt.Errorf("%s is a mounted volume: its files change by the link %s, not one by one", path, routing.DataLink)
	}
	for _, name := range outputNames() {
		file := filepath.Join(path, name)
		data, err := routing.ReadFile(file, plan.ChunkBytes)
		switch {
		case err == nil:
			d.held[name] = data
		case !errors.Is(err, fs.ErrNotExist) && !force:
			return nil, fmt.Errorf("%s: %w; --force replaces it", file, err)
		}
	}
	err := d.recognise(ref)
	if err != nil && !force {
		return nil, fmt.Errorf("%w; --force replaces it", err)
	}
	return d, nil
}

// recognise finds out whether what is held was built for the ring ref, and notes its generation then.
func (d *outputDir) recognise(ref plan.Ref) error {
	text := d.held[routing.FileName]
	if text == nil {
		return nil
	}
	path := filepath.Join(d.path, routing.FileName)
	file, err := routing.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read, so it may be of another ring: %w", path, err)
	case file.Ring != ref.Namespace+"/"+ref.Name:
		return fmt.Errorf("%s is of ring %s, not %s/%s", path, file.Ring, ref.Namespace, ref.Name)
	case file.UID != "":
		return fmt.Errorf("%s was published by a cluster, for the HashRing of UID %s", path, file.UID)
	}
	d.generation, d.stable = file.Generation, file.Stable
	return nil
}

// previous returns the ring that was built for the same HashRing before, nil where it is not there
// any more.
func (d *outputDir) previous() *ring.Ring {
	var snapshot []byte
	for _, name := range d.stable.Files() {
		snapshot = append(snapshot, d.held[name]...)
	}
	if ring.Digest(snapshot) != d.stable.Digest {
		return nil
	}
	r, err := plan.OpenSnapshot(snapshot)
	if err != nil {
		return nil
	}
	return r
}

// checkStray refuses a snapshot without a routing file, unless it is the one that is about to be written: then a build was
// interrupted.
func (d *outputDir) checkStray(files map[string][]byte) error {
	if d.held[routing.FileName] != nil {
		return nil
	}
	for _, name := range outputNames() {
		held := d.held[name]
		if len(held) > 0 && !bytes.Equal(held, files[name]) && !bytes.Equal(held, ring.EmptySlot()) {
			return fmt.Errorf("%s is there without a %s, so it may be of another ring; --force replaces it",
				filepath.Join(d.path, name), routing.FileName)
		}
	}
	return nil
}

// plan numbers what is to be written: the generation grows by one where the routing file says something new.
func (d *outputDir) plan(ref plan.Ref, desired *plan.Desired) (*plan.Publication, BuildOutcome, error) {
	const revision = 1
	same, err := plan.Render(ref, desired, plan.Numbers{Revision: revision, Generation: max(d.generation, 1)})
	if err != nil {
		return nil, "", err
	}
	files := same.Files()
	switch {
	case d.generation == 0:
		return same, BuildCreated, nil
	case !bytes.Equal(d.held[routing.FileName], files[routing.FileName]):
		next, err := plan.Render(ref, desired, plan.Numbers{Revision: revision, Generation: d.generation + 1})
		return next, BuildUpdated, err
	case len(d.needless(files)) > 0 || slices.ContainsFunc(d.differing(same), func(name string) bool { return len(files[name]) == 0 }):
		return same, BuildUpdated, nil
	case len(d.differing(same)) > 0:
		return same, BuildRestored, nil
	default:
		return same, BuildUnchanged, nil
	}
}

// differing returns the names of the files that are not held as they shall be, in the order in which they are written:
// routing.json comes last, so that it never names a snapshot that is not there yet.
func (d *outputDir) differing(p *plan.Publication) []string {
	files := p.Files()
	var names []string
	for _, name := range p.FileNames() {
		if held, ok := d.held[name]; !ok || !bytes.Equal(held, files[name]) {
			names = append(names, name)
		}
	}
	return names
}

// needless returns the names of the chunks that are held and that the ring does not have any more.
func (d *outputDir) needless(files map[string][]byte) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.held)) {
		if _, wanted := files[name]; !wanted {
			names = append(names, name)
		}
	}
	return names
}

// write puts files in place. They are complete on disk before the first one is renamed, and an error puts back what was
// there. Only a process that is killed between two renames leaves a snapshot that routing.json does not name; readers
// then keep the ring that they have, and building again mends it. Chunks that are not needed any more go at the end.
func (d *outputDir) write(p *plan.Publication) error {
	names, files := d.differing(p), p.Files()
	needless := d.needless(files)
	if len(names)+len(needless) == 0 {
		return nil
	}
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return err
	}
	staging, err := os.MkdirTemp(d.path, ".hashring-build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(staging) }() // What is left there is no part of the result.
	for _, name := range names {
		if err := writeSynced(filepath.Join(staging, name), files[name]); err != nil {
			return err
		}
	}
	for i, name := range names {
		if err := os.Rename(filepath.Join(staging, name), filepath.Join(d.path, name)); err != nil {
			return errors.Join(err, d.putBack(staging, names[:i]))
		}
	}
	for _, name := range needless {
		if err := os.Remove(filepath.Join(d.path, name)); err != nil {
			return err
		}
	}
	return syncDir(d.path)
}

// putBack restores files that were replaced.
func (d *outputDir) putBack(staging string, names []string) error {
	var errs []error
	for _, name := range names {
		path := filepath.Join(d.path, name)
		if _, ok := d.held[name]; !ok {
			errs = append(errs, os.Remove(path))
			continue
		}
		spare := filepath.Join(staging, name)
		if err := writeSynced(spare, d.held[name]); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.Rename(spare, path))
	}
	return errors.Join(errs...)
}

// writeSynced writes a file that is on disk when it returns, so that a crash after a rename cannot show an empty one.
func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDir makes renames durable. Some systems cannot do that to a directory, which is no reason to fail.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = dir.Sync()
	return dir.Close()
}
