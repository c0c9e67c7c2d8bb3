// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// maxTries is how often a load starts again because the volume was swapped under it, which takes its files away.
const maxTries = 4

// load reads the directory and swaps to what it holds. On an error the state stays as it is. Only one load runs at a time:
// Open calls it before it starts the goroutine that makes all later calls.
func (c *Client) load() error {
	started := time.Now()
	current := c.state.Load()
	next, err := c.read(current)
	switch {
	case err != nil:
		c.noteFailure(err, started)
		return err
	case next == nil:
		c.counters.succeed()
		return nil
	}
	next.loadedAt = time.Now()
	c.counters.swap(next, next.loadedAt.Sub(started)) // First, so that whoever sees the state finds it counted.
	c.swapping.Lock()
	c.state.Store(next.forced(c.force))
	c.swapping.Unlock()
	if current == nil {
		close(c.ready)
	}
	c.options.Logger.Info("ring loaded", "ring", next.name, "generation", next.generation, "digest", next.Digest(),
		"backends", next.Ring().Len(), "points", next.Ring().PointCount(), "candidate", next.candidate != nil, "basisPoints", next.basisPoints)
	return nil
}

// noteFailure counts a failed load and logs it where the one before did not fail in the same way.
func (c *Client) noteFailure(err error, at time.Time) {
	failure := Failure{Err: err, At: at, Current: true}
	var loadError *LoadError
	if errors.As(err, &loadError) {
		failure.Reason = loadError.Reason
	}
	if c.counters.fail(failure) {
		c.options.Logger.Warn("ring not loaded", "reason", failure.Reason, "error", err, "keepsRing", c.state.Load() != nil)
	}
}

// read returns the state that the directory holds, or nil where that is the current one. The error is a LoadError.
func (c *Client) read(current *State) (*State, error) {
	for try := 1; ; try++ {
		m := routing.MomentOf(c.dir)
		next, err := c.readMoment(m, current)
		if err == nil || try == maxTries || m == routing.MomentOf(c.dir) {
			return next, err
		}
	}
}

func (c *Client) readMoment(m routing.Moment, current *State) (*State, error) {
	data, shown, err := m.ReadRouting()
	if err := readError(shown, err); err != nil {
		return nil, err
	}
	source := sha256.Sum256(data)
	if current != nil && current.source == source {
		return nil, nil
	}
	file, err := routing.Parse(data)
	if err != nil {
		return nil, &LoadError{Reason: ReasonRouting, File: shown, Err: err}
	}
	if ring := c.options.Ring; ring != "" && file.Ring != ring {
		return nil, &LoadError{
			Reason: ReasonOtherRing, File: shown, Value: file.Ring, Limit: ring, Err: fmt.Errorf("it is of ring %s, not of %s", file.Ring, ring),
		}
	}
	if err := checkSuccession(file, shown, current); err != nil {
		return nil, err
	}
	next := &State{
		name: file.Ring, uid: file.UID, epoch: file.LeaderEpoch, generation: file.Generation, source: source,
		split: file.Split, basisPoints: file.Split.In(c.options.Datacenter),
	}
	if next.stable, err = c.side(Stable, m, file.Stable, file, current); err != nil {
		return nil, err
	}
	if file.Candidate != nil {
		if next.candidate, err = c.side(Candidate, m, *file.Candidate, file, current); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// side returns a ring in its role. One that is loaded already is not read again, whatever role it had.
func (c *Client) side(role Role, m routing.Moment, ref routing.Reference, file routing.File, current *State) (*side, error) {
	var loaded *loadedRing
	if current != nil {
		for _, had := range []*side{current.stable, current.candidate} {
			if had != nil && had.loaded.digest == ref.Digest && had.version().String() == ref.Version {
				loaded = had.loaded
			}
		}
	}
	if loaded == nil {
		var err error
		if loaded, err = openSlot(m, ref, c.options); err != nil {
			return nil, err
		}
		if current != nil {
			loaded.views.warm(current.stable.loaded.views)
		}
	}
	return newSide(role, ref, file, loaded, &c.failures), nil
}

// checkSuccession refuses the file of another HashRing, a lower leader epoch, and a lower generation of the same epoch. It takes an
// equal generation with other content: the operator never writes that, but a directory that was emptied and built again holds it. It also takes any
// generation of a HashRing that was deleted and made again under its name, which has another UID.
func checkSuccession(file routing.File, shown string, current *State) error {
	switch {
	case current == nil:
		return nil
	case file.Ring != current.name:
		return &LoadError{
			Reason: ReasonOtherRing, File: shown, Value: file.Ring, Limit: current.name,
			Err: fmt.Errorf("it is of ring %s, the loaded one is %s", file.Ring, current.name),
		}
	case file.UID != current.uid:
		return nil
	case file.LeaderEpoch < current.epoch:
		return &LoadError{
			Reason: ReasonRegression, File: shown, Value: strconv.FormatInt(file.LeaderEpoch, 10), Limit: strconv.FormatInt(current.epoch, 10),
			Err: fmt.Errorf("its leader epoch is %d, the loaded one is %d: an operator wrote it that no longer leads", file.LeaderEpoch, current.epoch),
		}
	case file.LeaderEpoch == current.epoch && file.Generation < current.generation:
		return &LoadError{
			Reason: ReasonRegression, File: shown,
			Value: strconv.FormatInt(file.Generation, 10), Limit: strconv.FormatInt(current.generation, 10),
			Err: fmt.Errorf("its generation is %d, the loaded one is %d", file.Generation, current.generation),
		}
	}
	return nil
}

// openSlot reads the snapshot that ref names and verifies that it is that one.
func openSlot(m routing.Moment, ref routing.Reference, options Options) (*loadedRing, error) {
	r, shown, err := openSnapshot(m, ref, options)
	if err != nil {
		return nil, err
	}
	if version := r.Algorithm().Version.String(); version != ref.Version {
		return nil, &LoadError{
			Reason: ReasonVersion, File: shown, Value: version, Limit: ref.Version,
			Err: fmt.Errorf("its algorithm is %s, %s says %s", version, routing.FileName, ref.Version),
		}
	}
	views, err := newViewCache(r)
	if err != nil {
		return nil, &LoadError{Reason: ReasonSnapshot, File: shown, Err: err}
	}
	return &loadedRing{ring: r, digest: ref.Digest, views: views}, nil
}

// openSnapshot maps the snapshot where its file never changes: in a volume that is swapped as a whole. A file of a plain
// directory can be written to by anybody while the ring is used, and is copied; so is what is cut into chunks.
func openSnapshot(m routing.Moment, ref routing.Reference, options Options) (*ring.Ring, string, error) {
	open := ring.OpenOptions{MaxPoints: options.MaxPoints, Digest: ref.Digest}
	if path, shown, ok := m.VolumeFile(ref); ok {
		info, err := os.Stat(path)
		if err == nil && info.Size() > options.MaxSnapshotBytes {
			err = &routing.FileTooLargeError{Size: info.Size(), Limit: options.MaxSnapshotBytes}
		}
		if err := readError(shown, err); err != nil {
			return nil, shown, err
		}
		r, err := ring.OpenFile(path, open)
		return r, shown, openError(shown, ref, err)
	}
	snapshot, shown, err := m.ReadSnapshot(ref, options.MaxSnapshotBytes)
	if err := readError(shown, err); err != nil {
		return nil, shown, err
	}
	r, err := ring.OpenWith(snapshot, open)
	return r, shown, openError(shown, ref, err)
}

// openError says as a LoadError why a snapshot could not be opened; nil where it could.
func openError(shown string, ref routing.Reference, err error) error {
	var (
		tooMany *ring.TooManyPointsError
		other   *ring.DigestError
		path    *fs.PathError
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ring.ErrEmptySlot):
		return &LoadError{
			Reason: ReasonEmptySlot, File: shown, Limit: ref.Digest, Err: fmt.Errorf("%w; %s names %s", err, routing.FileName, ref.Digest),
		}
	case errors.As(err, &other):
		return &LoadError{Reason: ReasonDigest, File: shown, Value: other.Digest, Limit: ref.Digest, Err: otherDigest(other, ref)}
	case errors.As(err, &tooMany):
		return &LoadError{
			Reason: ReasonPoints, File: shown, Value: strconv.FormatUint(tooMany.Points, 10), Limit: strconv.FormatUint(tooMany.Limit, 10),
			Err: fmt.Errorf("it is a recipe of %d points, the limit is %d", tooMany.Points, tooMany.Limit),
		}
	case errors.As(err, &path): // Of a file that is mapped.
		return readError(shown, path.Err)
	default:
		return &LoadError{Reason: ReasonSnapshot, File: shown, Err: err}
	}
}

func otherDigest(err *ring.DigestError, ref routing.Reference) error {
	whole := "its digest"
	if ref.Chunks > 0 {
		whole = "the digest of it and all chunks up to " + ref.Slot.ChunkFileName(ref.Chunks-1)
	}
	return fmt.Errorf("%s is %s, %s names %s", whole, err.Digest, routing.FileName, ref.Digest)
}
