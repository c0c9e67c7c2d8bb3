// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// source is a place that a ring is published in.
type source interface {
	// read returns what is there, unchecked. The error is for a place that cannot be read at all; that of a single file is in
	// its artifact.
	read(ctx context.Context, what extent) (*publication, error)
}

// extent is how much of a publication is read.
type extent int

const (
	// stableRing is routing.json and the slot of the ring that answers.
	stableRing extent = iota
	// bothRings is also the slot of the candidate, where routing.json names one.
	bothRings
	// everything is both slots, whatever is in them, and what is beside them.
	everything
)

// has says whether a slot is read whose reference is of a role.
func (e extent) has(r role) bool {
	return e == everything || r == roleStable || r == roleCandidate && e == bothRings
}

// role is what routing.json names a slot for.
type role int

const (
	roleNone role = iota
	roleStable
	roleCandidate
)

// artifact is one published file, or why it could not be read.
type artifact struct {
	path string
	data []byte
	err  error
}

// publication is what a source holds, as it was found.
type publication struct {
	// origin is how messages call the source.
	origin string
	// bare is the snapshot of a source that has nothing else. The fields below are empty then.
	bare *artifact

	routing *artifact
	// slots are the snapshots, as far as they were read: all chunks of a slot that routing.json names, the first one of another.
	slots map[routing.Slot]*artifact
	// spares are the chunks that are not needed, where the whole was read.
	spares []*artifact
	// cluster is nil where the source is a directory.
	cluster *clusterObjects
}

// reference returns how the routing file, as far as it can be read, names a slot, and for what.
func (p *publication) reference(slot routing.Slot) (routing.Reference, role) {
	if p.routing.err == nil {
		file, err := routing.Parse(p.routing.data)
		switch {
		case err == nil && file.Stable.Slot == slot:
			return file.Stable, roleStable
		case err == nil && file.Candidate != nil:
			return *file.Candidate, roleCandidate
		}
	}
	return routing.NewReference(slot, "", "", 1), roleNone
}

// opened is a ring that can be asked, with what its source says beside it.
type opened struct {
	ring   *ring.Ring
	origin string
	// file is nil where the source is a snapshot file.
	file *routing.File
	// revision is 0 where the source does not tell.
	revision int64
}

// open checks all that a reader checks before it uses a ring.
func (p *publication) open() (*opened, error) {
	if p.bare != nil {
		r, err := openSnapshot(p.bare)
		if err != nil {
			return nil, err
		}
		return &opened{ring: r, origin: p.origin}, nil
	}
	if p.routing.err != nil {
		return nil, p.routing.err
	}
	file, err := routing.Parse(p.routing.data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.routing.path, err)
	}
	r, err := p.openReference(file.Stable)
	if err != nil {
		return nil, err
	}
	o := &opened{ring: r, origin: p.origin, file: &file}
	if p.cluster != nil {
		o.revision = p.cluster.revision(file.Stable.Slot)
	}
	return o, checkAddresses(file, r)
}

// openReference opens the snapshot that ref names, and checks that it is that one.
func (p *publication) openReference(ref routing.Reference) (*ring.Ring, error) {
	a := p.slots[ref.Slot]
	if err := checkDigest(a, ref); err != nil {
		return nil, err
	}
	r, err := openSnapshot(a)
	if err != nil {
		return nil, err
	}
	return r, checkVersion(r, ref)
}

func openSnapshot(a *artifact) (*ring.Ring, error) {
	if a.err != nil {
		return nil, a.err
	}
	r, err := plan.OpenSnapshot(a.data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.path, err)
	}
	return r, nil
}

func checkDigest(a *artifact, ref routing.Reference) error {
	if a.err != nil {
		return a.err
	}
	digest := ring.Digest(a.data)
	switch {
	case digest == ref.Digest:
		return nil
	case ref.Chunks > 0:
		return fmt.Errorf("%s to %s together have the digest %s, %s names %s",
			a.path, ref.Slot.ChunkFileName(ref.Chunks-1), digest, routing.FileName, ref.Digest)
	default:
		return fmt.Errorf("%s has the digest %s, %s names %s", a.path, digest, routing.FileName, ref.Digest)
	}
}

func checkVersion(r *ring.Ring, ref routing.Reference) error {
	if version := r.Algorithm().Version.String(); version != ref.Version {
		return fmt.Errorf("the algorithm of the snapshot is %s, %s says %s", version, routing.FileName, ref.Version)
	}
	return nil
}

// checkAddresses says whether every backend of the published rings has a dial address: with identity Name in the routing file,
// otherwise in its identity. Of a candidate that is not among the rings nothing is known.
func checkAddresses(file routing.File, rings ...*ring.Ring) error {
	ids := map[string]bool{}
	for _, r := range rings {
		for i := range r.Len() {
			if r.Identity() == ring.IdentityName && file.Addresses[r.ID(i)] == "" {
				return fmt.Errorf("%s has no address for backend %s", routing.FileName, r.ID(i))
			}
			ids[r.ID(i)] = true
		}
	}
	want := 0
	if rings[0].Identity() == ring.IdentityName {
		want = len(ids)
	}
	known := file.Candidate == nil || len(rings) > 1
	if n := len(file.Addresses); n != want && (known || want == 0) {
		return fmt.Errorf("%s has %d addresses, the ring has %d backends with identity %s: %d are wanted",
			routing.FileName, n, len(ids), rings[0].Identity(), want)
	}
	return nil
}

// name returns namespace and name of the HashRing, "" where the source does not tell.
func (o *opened) name() string {
	if o.file == nil {
		return ""
	}
	return o.file.Ring
}

// address returns where backend i is dialled, "" where that is not known: a snapshot of names does not hold it.
func (o *opened) address(i int) string {
	switch {
	case o.ring.Identity() != ring.IdentityName:
		return o.ring.ID(i)
	case o.file != nil:
		return o.file.Addresses[o.ring.ID(i)]
	default:
		return ""
	}
}

// view returns the view of features, which can be empty.
func (o *opened) view(features []string) (*ring.View, error) {
	v, err := o.ring.View(features...)
	if err != nil {
		return nil, fmt.Errorf("--features: %w", err)
	}
	return v, nil
}

// answerable returns an error where nothing can own a key in a view.
func (o *opened) answerable(v *ring.View, features []string) error {
	switch {
	case v.Len() > 0:
		return nil
	case len(features) == 0:
		return fmt.Errorf("none of the %d backends has a weight above 0", o.ring.Len())
	default:
		return fmt.Errorf("--features %s: no backend with a weight above 0 has all of them", strings.Join(features, ","))
	}
}
