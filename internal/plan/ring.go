// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// ChunkBytes is how much a ConfigMap takes: the API server counts the values, not keys or annotations.
const ChunkBytes = 1 << 20

// MaxPoints is the largest ring that is built at all. One of 2048 backends with 100,000 points each has 204,800,000.
const MaxPoints = 1 << 28

// MaxTrimmedPoints is the same for V3, whose points are looked at again for each view and each point that is left out. Nobody
// needs so many to be within a percent.
const MaxTrimmedPoints = 1 << 20

func maxPoints(version ring.Version) uint64 {
	if version == ring.V3 {
		return MaxTrimmedPoints
	}
	return MaxPoints
}

// Request is everything that decides the bytes of a snapshot.
type Request struct {
	// Recipe is that of a ring which is to be encoded again; of Config only MaxPoints counts then. Nil for a ring that is to be built.
	Recipe []byte
	// Previous is the recipe of the ring before, from which V3 takes what is trimmed; nil where there is none, and with other
	// versions. It stands for Config.Previous, which is not to be set.
	Previous []byte
	// Config is the ring. Its MaxPoints bounds what is built, and with that the memory that it takes; 1 to [MaxPoints].
	Config ring.Config
	// Encoding is what spec asks for: Auto, Points or Recipe.
	Encoding v1alpha1.Encoding
	// Chunks is how many ConfigMaps the snapshot may take.
	Chunks int
}

// budget is how many bytes the snapshot can have.
func (q Request) budget() uint64 { return uint64(q.Chunks) * ChunkBytes }

// worthBuilding is how many points are. As points no ring of more than its budget in bytes fits: even with one backend, whose
// entries name no owner, a point of such a ring takes more than a byte. V3 takes long to build, so there it is those that
// would fit if the snapshot had nothing else.
func (q Request) worthBuilding() uint64 {
	switch {
	case q.Encoding != v1alpha1.EncodingPoints:
		return q.Config.MaxPoints
	case q.Config.Algorithm.Version != ring.V3:
		return min(q.Config.MaxPoints, q.budget())
	}
	return uint64(sort.Search(int(q.Config.MaxPoints), func(n int) bool {
		return packedBytes(uint64(n+1), len(q.Config.Backends)) > q.budget()
	}))
}

// Points returns how many points a build of the request places, or close to it. A build of more than Config.MaxPoints places
// none.
func (q Request) Points() uint64 {
	if q.Recipe == nil {
		return pointCount(q.Config, q.Config.Algorithm)
	}
	config, err := ring.ReadConfig(q.Recipe)
	if err != nil {
		return 0 // It is not built.
	}
	return pointCount(config, config.Algorithm)
}

// Key returns a digest of the request: equal keys, equal snapshots. The order of backends counts here, although it makes
// no difference to the ring.
func (q Request) Key() ([sha256.Size]byte, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("writing down what a ring is built from: %w", err)
	}
	return sha256.Sum256(text), nil
}

// Builder builds rings, and compares them.
type Builder interface {
	// Build returns what [BuildRing] does, built now or kept from before.
	Build(Request) (*Ring, error)
	// Movement returns what [Movement] does.
	Movement(from, to *Ring) (uint64, error)
	// WorstMovement returns what [WorstMovement] does.
	WorstMovement(from, to *Ring) (moved uint64, view []string, err error)
}

// Afresh is a [Builder] that remembers nothing.
type Afresh struct{}

// Build is [BuildRing].
func (Afresh) Build(q Request) (*Ring, error) { return BuildRing(q) }

// Movement is [Movement].
func (Afresh) Movement(from, to *Ring) (uint64, error) { return Movement(from, to) }

// WorstMovement is [WorstMovement].
func (Afresh) WorstMovement(from, to *Ring) (uint64, []string, error) { return WorstMovement(from, to) }

// Ring is what is kept of a ring that was built: the bytes that are published, and what the status says of it. The points
// are not kept: under encoding Recipe they are a thousand times as large.
type Ring struct {
	snapshot  []byte
	digest    string
	encoding  v1alpha1.Encoding
	algorithm ring.Algorithm
	backends  int
	points    int
	stats     ring.Stats
	views     []ViewBalance
	warnings  []v1alpha1.Warning
	recipe    []byte
}

// Snapshot returns the bytes that are published. They must not be changed.
func (r *Ring) Snapshot() []byte { return r.snapshot }

// Digest returns the digest of the snapshot.
func (r *Ring) Digest() string { return r.digest }

// Encoding returns how the snapshot is written: Points or Recipe.
func (r *Ring) Encoding() v1alpha1.Encoding { return r.encoding }

// Algorithm returns the algorithm that placed the points.
func (r *Ring) Algorithm() ring.Algorithm { return r.algorithm }

// Len returns the number of backends, drained ones included.
func (r *Ring) Len() int { return r.backends }

// PointCount returns the number of points.
func (r *Ring) PointCount() int { return r.points }

// Stats returns how evenly the ring spreads the key space.
func (r *Ring) Stats() ring.Stats { return r.stats }

// ViewBalances returns what [ViewBalances] does.
func (r *Ring) ViewBalances() []ViewBalance { return r.views }

// Warnings returns what is odd about the ring.
func (r *Ring) Warnings() []v1alpha1.Warning { return r.warnings }

// Recipe returns the ring without its points; it is the snapshot where that is a recipe. It must not be changed.
func (r *Ring) Recipe() []byte { return r.recipe }

// Chunks returns the snapshot cut into pieces of at most [ChunkBytes], which share its memory.
func (r *Ring) Chunks() [][]byte {
	var chunks [][]byte
	for rest := r.snapshot; len(rest) > 0; {
		n := min(len(rest), ChunkBytes)
		chunks = append(chunks, rest[:n:n])
		rest = rest[n:]
	}
	return chunks
}

// Open returns the ring itself. Under encoding Recipe it is built again, which proves the snapshot.
func (r *Ring) Open() (*ring.Ring, error) { return OpenSnapshot(r.snapshot) }

// OpenSnapshot opens whatever the operator publishes.
func OpenSnapshot(snapshot []byte) (*ring.Ring, error) {
	return ring.OpenWith(snapshot, ring.OpenOptions{MaxPoints: MaxPoints})
}

// BuildRing builds a ring and encodes it as the request asks for. Errors: a [Refusal] for a snapshot that is too large, and
// those of [ring.Build].
func BuildRing(q Request) (*Ring, error) {
	q, config, err := q.prepare()
	if err != nil {
		return nil, err
	}
	built, err := ring.Build(config)
	var tooMany *ring.TooManyPointsError
	switch {
	case errors.As(err, &tooMany) && tooMany.Points <= q.Config.MaxPoints:
		return nil, tooLarge(q, tooMany.Points, estimate(config, tooMany.Points))
	case errors.As(err, &tooMany):
		return nil, tooManyPoints(q, tooMany.Points)
	case err != nil:
		return nil, err
	}
	r := &Ring{
		recipe: built.Recipe(), algorithm: built.Algorithm(), backends: built.Len(), points: built.PointCount(),
		stats: built.Stats(), views: ViewBalances(built),
	}
	if size := len(r.recipe); size > MaxRecipeBytes {
		return nil, refusef(v1alpha1.ReasonSnapshotTooLarge,
			"backends, parameters and trims of the ring take %d bytes, its record at most %d: fewer backends, shorter names or fewer views would fit",
			size, MaxRecipeBytes)
	}
	r.encode(q, built.Snapshot())
	if size := uint64(len(r.snapshot)); size > q.budget() {
		return nil, tooLarge(q, uint64(r.points), size)
	}
	r.digest, r.warnings = ring.Digest(r.snapshot), append(largeRecipe(r.encoding, r.points), Warnings(built, r.views)...)
	return r, nil
}

// prepare returns the request with the Config that is to be built for it.
func (q Request) prepare() (Request, ring.Config, error) {
	source, limit := q.Previous, uint64(MaxTrimmedPoints) // A ring of more points is none of V3, and has nothing trimmed.
	if q.Recipe != nil {
		source, limit = q.Recipe, q.Config.MaxPoints
	}
	var previous *ring.Ring
	if source != nil {
		opened, err := ring.OpenWith(source, ring.OpenOptions{MaxPoints: limit})
		if err != nil && q.Recipe != nil {
			return q, ring.Config{}, fmt.Errorf("opening the recipe: %w", err)
		}
		if err == nil {
			previous = opened
		}
	}
	if q.Recipe != nil {
		maxPoints := q.Config.MaxPoints
		q.Config = previous.Config() // It builds the same ring again.
		previous, q.Config.MaxPoints = q.Config.Previous, maxPoints
	}
	config := q.Config
	config.Previous, q.Config.Previous, config.MaxPoints = previous, nil, q.worthBuilding()
	return q, config, nil
}

// encode chooses the snapshot.
func (r *Ring) encode(q Request, points []byte) {
	if q.Encoding == v1alpha1.EncodingPoints || q.Encoding == v1alpha1.EncodingAuto && uint64(len(points)) <= q.budget() {
		r.encoding, r.snapshot = v1alpha1.EncodingPoints, points
		return
	}
	r.encoding, r.snapshot = v1alpha1.EncodingRecipe, r.recipe
}
