// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"runtime"
	"slices"
	"sync/atomic"
)

// Ring is a consistent-hash ring: an immutable snapshot, searched in place.
type Ring struct {
	snapshot  []byte
	encoding  Encoding
	algorithm Algorithm
	identity  Identity
	backends  backendTable
	features  []feature
	packed    packed
	// views are the declared views of V3, ascending.
	views []declaredView
	// sums start the chains; V3 only.
	sums []uint32
	// all is the view of all backends where points are trimmed from it; nil where they are not.
	all *View
	// placed holds the backends that have a point.
	placed bitmap
	// copied is how many bytes the copies of points take that views of this ring hold.
	copied *atomic.Int64
}

// feature is a name and the backends that have it.
type feature struct {
	name    string
	members bitmap
}

// Snapshot returns the bytes that the ring is: what Open takes. They belong to the ring and must not be changed.
func (r *Ring) Snapshot() []byte { return r.snapshot }

// HeldBytes returns how much memory the ring takes, in bytes, without that of its views: the snapshot, mapped or not, the
// points that were built for a recipe, and what is kept for each backend.
func (r *Ring) HeldBytes() int {
	n := len(r.snapshot) + len(r.backends.ids.blob) + len(r.backends.zones.blob) + 8*len(r.placed) + 4*len(r.sums) + 4*len(r.packed.guide)
	if r.encoding == EncodingRecipe {
		n += r.packed.heldBytes() - 4*len(r.packed.guide)
	}
	for _, f := range r.features {
		n += 8 * len(f.members)
	}
	for _, v := range r.views {
		n += 4 * len(v.trims)
	}
	if r.all != nil {
		n += r.all.HeldBytes()
	}
	return n
}

// Digest returns "sha256:" and the SHA-256 of the snapshot in lower-case hex. It is computed at every call.
func (r *Ring) Digest() string {
	defer runtime.KeepAlive(r)
	return Digest(r.snapshot)
}

// Digest returns the digest that names a snapshot: "sha256:" and the SHA-256 of its bytes in lower-case hex.
func Digest(snapshot []byte) string {
	sum := sha256.Sum256(snapshot)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Algorithm returns the algorithm that placed the points.
func (r *Ring) Algorithm() Algorithm { return r.algorithm }

// Identity returns what of a backend was hashed.
func (r *Ring) Identity() Identity { return r.identity }

// Len returns the number of backends, drained ones included. Backends are numbered 0 to Len-1 in ring order, which is
// the order of their identities; every method that returns a backend returns that number.
func (r *Ring) Len() int { return r.backends.n }

// PointCount returns the number of points, those included that lose a tie.
func (r *Ring) PointCount() int { return int(r.packed.points) }

// ID returns the identity of backend i, without allocating.
func (r *Ring) ID(i int) string {
	id := r.backends.id(i)
	runtime.KeepAlive(r)
	return id
}

// Weight returns the weight of backend i.
func (r *Ring) Weight(i int) uint32 {
	weight := r.backends.weight(i)
	runtime.KeepAlive(r)
	return weight
}

// Zone returns the zone of backend i, "" where it has none, without allocating.
func (r *Ring) Zone(i int) string {
	zone := r.backends.zone(i)
	runtime.KeepAlive(r)
	return zone
}

// checksum returns the CRC-32 that starts the chain of backend i.
func (r *Ring) checksum(i int) uint32 {
	if r.sums != nil {
		return r.sums[i]
	}
	parsed, _ := r.identity.parse(r.ID(i)) // Open has checked it.
	return crc32.ChecksumIEEE(r.identity.hashInput(nil, parsed))
}

// Find returns the number of the backend with this identity. It compares every identity in turn.
func (r *Ring) Find(id string) (int, bool) {
	for i := range r.Len() {
		if r.ID(i) == id {
			return i, true
		}
	}
	return 0, false
}

// Features returns the names of the declared features, sorted. The caller owns the slice.
func (r *Ring) Features() []string {
	names := make([]string, len(r.features))
	for i, f := range r.features {
		names[i] = f.name
	}
	return names
}

// Views returns the sets of features for which points are trimmed: with V3 the empty set, which is the view of all
// backends, and those that were declared; nil with other versions. The caller owns the slices.
func (r *Ring) Views() [][]string {
	var views [][]string
	for _, v := range r.views {
		views = append(views, r.featureNames(v.features))
	}
	return views
}

// Trims returns the positions in ring order of the points that the view of these features leaves out, ascending; nil for a
// set that is not declared. The caller owns the slice.
func (r *Ring) Trims(features ...string) []int {
	set, ok := r.featureSet(features)
	if !ok {
		return nil
	}
	declared, ok := r.declared(set)
	if !ok {
		return nil
	}
	trims := make([]int, len(declared.trims))
	for i, pos := range declared.trims {
		trims[i] = int(pos)
	}
	return trims
}

func (r *Ring) featureNames(set uint64) []string {
	var names []string
	for f := range r.features {
		if set>>f&1 != 0 {
			names = append(names, r.features[f].name)
		}
	}
	return names
}

// featureSet returns the set of these features, if the ring has them all.
func (r *Ring) featureSet(names []string) (set uint64, ok bool) {
	for _, name := range names {
		f := slices.IndexFunc(r.features, func(f feature) bool { return f.name == name })
		if f < 0 {
			return 0, false
		}
		set |= 1 << f
	}
	return set, true
}

// declared returns the declared view of a set of features.
func (r *Ring) declared(set uint64) (declaredView, bool) {
	k, ok := slices.BinarySearchFunc(r.views, set, func(v declaredView, set uint64) int { return cmp.Compare(v.features, set) })
	if !ok {
		return declaredView{}, false
	}
	return r.views[k], true
}

// HasFeature says whether backend i has the declared feature of that name.
func (r *Ring) HasFeature(i int, name string) bool {
	members := r.members(name)
	return members != nil && members.has(i)
}

func (r *Ring) members(name string) bitmap {
	f := slices.IndexFunc(r.features, func(f feature) bool { return f.name == name })
	if f < 0 {
		return nil
	}
	return r.features[f].members
}

// Owner returns the backend that owns the position hash: that of the first point at or behind it. The error is
// [ErrNoBackend] where the ring has no point. It does not allocate.
func (r *Ring) Owner(hash uint32) (int, error) {
	if r.all != nil {
		return r.all.Owner(hash)
	}
	if r.packed.points == 0 {
		return 0, ErrNoBackend
	}
	_, entry := r.packed.find(hash)
	return int(entry & r.packed.ownerMask), nil
}

// Config returns a Config that builds this ring again, with backends in ring order. The caller owns it.
func (r *Ring) Config() Config {
	c := r.base()
	if r.algorithm.Version == V3 {
		c.Views = r.Views()[1:] // The first is that of all backends, which need not be declared.
		c.Previous = r          // What is trimmed is an input.
	}
	return c
}

// base is Config without what is trimmed, so that it decides the points.
func (r *Ring) base() Config {
	c := Config{
		Algorithm: r.algorithm, Identity: r.identity, Features: r.Features(), MaxPoints: HardMaxPoints,
	}
	for i := range r.Len() {
		b := Backend{ID: r.ID(i), Weight: r.Weight(i), Zone: r.Zone(i)}
		for _, f := range r.features {
			if f.members.has(i) {
				b.Features = append(b.Features, f.name)
			}
		}
		c.Backends = append(c.Backends, b)
	}
	return c
}
