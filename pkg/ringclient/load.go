// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"crypto/sha256"
	"errors"
	"fmt"
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
	next.counters = &c.counters
	next.loadedAt = time.Now()
	c.counters.swap(next.loadedAt.Sub(started)) // First, so that whoever sees the state finds it counted.
	c.state.Store(next)
	if current == nil {
		close(c.ready)
	}
	c.options.Logger.Info("ring loaded", "ring", next.name, "generation", next.generation, "digest", next.Digest(),
		"backends", next.Ring().Len(), "points", next.Ring().PointCount())
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
	if err := checkSuccession(file, shown, current); err != nil {
		return nil, err
	}
	next := &State{name: file.Ring, uid: file.UID, generation: file.Generation, source: source}
	if current != nil && current.loaded.digest == file.Stable.Digest && current.Version().String() == file.Stable.Version {
		next.loaded = current.loaded
	} else if next.loaded, err = openSlot(m, file.Stable, c.options); err != nil {
		return nil, err
	}
	next.setAddresses(file)
	next.setDown(file)
	return next, nil
}

// checkSuccession refuses the file of another HashRing and a lower generation. It takes an equal generation with other
// content: the operator never writes that, but a directory that was emptied and built again holds it. It also takes any
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
	case file.UID == current.uid && file.Generation < current.generation:
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
	snapshot, shown, err := m.ReadSnapshot(ref, options.MaxSnapshotBytes)
	if err := readError(shown, err); err != nil {
		return nil, err
	}
	if string(snapshot) == string(ring.EmptySlot()) {
		return nil, &LoadError{
			Reason: ReasonEmptySlot, File: shown, Limit: ref.Digest,
			Err: fmt.Errorf("%w; %s names %s", ring.ErrEmptySlot, routing.FileName, ref.Digest),
		}
	}
	if err := checkDigest(snapshot, shown, ref); err != nil {
		return nil, err
	}
	r, err := ring.OpenWith(snapshot, ring.OpenOptions{MaxPoints: options.MaxPoints})
	if err != nil {
		return nil, openError(shown, err)
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

// openError says as a LoadError why a snapshot could not be opened.
func openError(shown string, err error) error {
	var tooMany *ring.TooManyPointsError
	if errors.As(err, &tooMany) {
		return &LoadError{
			Reason: ReasonPoints, File: shown, Value: strconv.FormatUint(tooMany.Points, 10), Limit: strconv.FormatUint(tooMany.Limit, 10),
			Err: fmt.Errorf("it is a recipe of %d points, the limit is %d", tooMany.Points, tooMany.Limit),
		}
	}
	return &LoadError{Reason: ReasonSnapshot, File: shown, Err: err}
}

// checkDigest says whether a snapshot is the one that ref names.
func checkDigest(snapshot []byte, shown string, ref routing.Reference) error {
	digest := ring.Digest(snapshot)
	if digest == ref.Digest {
		return nil
	}
	whole := "its digest"
	if ref.Chunks > 0 {
		whole = "the digest of it and all chunks up to " + ref.Slot.ChunkFileName(ref.Chunks-1)
	}
	return &LoadError{
		Reason: ReasonDigest, File: shown, Value: digest, Limit: ref.Digest,
		Err: fmt.Errorf("%s is %s, %s names %s", whole, digest, routing.FileName, ref.Digest),
	}
}
