// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Limits of a [Config]. Going over one is a [ConfigError], or a [TooManyPointsError] for the points.
const (
	// MaxBackends is how many backends a ring can have, drained ones included.
	MaxBackends = 65536
	// MaxWeight is the largest weight of a backend.
	MaxWeight = 1_000_000
	// MaxPointsPerWeight is the largest Algorithm.PointsPerWeight.
	MaxPointsPerWeight = 100_000
	// MaxViews is how many views a V3 ring can declare.
	MaxViews = 64
	// MaxFeatures is how many features a ring can have.
	MaxFeatures = 64
	// DefaultMaxPoints is the limit of the total number of points where Config.MaxPoints is zero.
	DefaultMaxPoints = 64 << 20
	// HardMaxPoints is the largest Config.MaxPoints: the directory addresses points with 31 bits.
	HardMaxPoints = 1<<31 - 1
	// MaxNameBytes is how long a backend's identity without its port, a zone or a feature name can be.
	MaxNameBytes = 253
)

// minPoints is how many points a backend of a V3 ring has at the least, unless it is drained.
const minPoints = 4

// million is what Algorithm.MaxImbalance counts in.
const million = 1_000_000

// V1PointsPerWeight is the only number of points for each unit of weight that V1 takes, as NGINX and pingora have it.
const V1PointsPerWeight = 160

// Version is the version of the placement algorithm.
type Version uint8

const (
	// V1 places as NGINX "hash … consistent" and pingora-ketama v1 do: 160 points for each unit of weight.
	// Where several backends have the same point, the first in ring order owns it; NGINX takes the first in its
	// configuration, pingora v1 whichever an unstable sort leaves.
	V1 Version = 1
	// V2 places as pingora-ketama v2 does. Where several backends have the same point, the first in ring order owns it:
	// IPv4 before IPv6, then by the bytes of the address, then by port.
	V2 Version = 2
	// V3 places at the points of V1 and V2, as many as PointsPerWeight and WeightUnit say, and then trims: it leaves out the
	// points that do most harm to the balance, until no backend of a declared view has more than MaxImbalance above its
	// share. Where several backends have the same point, a mix of hash and backend decides, which favours nobody; a backend
	// on the fixed point or in another's shadow gets a chain of its own.
	V3 Version = 3
)

// String returns "V1", "V2" or "V3".
func (v Version) String() string { return "V" + strconv.Itoa(int(v)) }

// Algorithm says how many points a backend gets and how ties are decided.
type Algorithm struct {
	// Version is V1, V2 or V3.
	Version Version
	// PointsPerWeight is how many points each unit of weight gets, 1 to MaxPointsPerWeight; 160 with V1.
	PointsPerWeight uint32
	// WeightUnit is the weight that gets PointsPerWeight points, 1 to MaxWeight, with V3 only: 40 points for a weight of 625.
	// A backend has PointsPerWeight × weight / WeightUnit points, rounded, and at least minPoints.
	WeightUnit uint32
	// MaxImbalance is how much of its share a backend may have too much, in millionths, 1 to 1,000,000, with V3 only: 10,000
	// is 1 %. Where it cannot be reached, trimming stops at what can.
	MaxImbalance uint32
}

// Backend is one server of a [Config].
type Backend struct {
	// ID is the identity that is hashed, in the form that Config.Identity asks for. Unique within a Config.
	ID string
	// Weight is the backend's share relative to the others, 0 to MaxWeight. A backend of weight 0 is drained: it stays in
	// the table and owns nothing.
	Weight uint32
	// Zone is where the backend runs, "" where that is not known; at most MaxNameBytes of printable ASCII.
	Zone string
	// Features are the names of the features that the backend has, in any order; each is one of Config.Features.
	Features []string
}

// Config is everything that decides a ring. The order of Backends and Features makes no difference.
type Config struct {
	Algorithm Algorithm
	Identity  Identity
	Backends  []Backend
	// Features names every feature that a [View] can ask for, whether or not a backend has it.
	Features []string
	// Views are the sets of features, each in any order, for which points are trimmed, with V3 only. The view of all backends
	// is always one of them. Other combinations are looked up untrimmed.
	Views [][]string
	// Previous is the ring before this one, if it was V3: what it has trimmed stays trimmed while that helps the balance, so
	// that a small change moves few keys. It is an input like the others: the same Config with the same Previous gives the same
	// bytes.
	Previous *Ring
	// MaxPoints limits the total number of points; 0 is DefaultMaxPoints. It is no part of the ring.
	MaxPoints uint64
}

// table is a validated Config in ring order.
type table struct {
	algorithm Algorithm
	identity  Identity
	ids       []id
	weights   []uint32
	zones     []string
	features  []string
	members   []bitmap // by feature
	views     []uint64 // the declared views as sets of features, ascending; none but with V3
	sums      []uint32 // the checksums that start the chains
	points    uint32
}

// newTable validates c and puts its backends into ring order.
func newTable(c Config) (*table, error) {
	if err := checkLimits(c); err != nil {
		return nil, err
	}
	ids, err := parseIDs(c)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(ids[i].compare(ids[j]), cmp.Compare(i, j)) })
	t := &table{algorithm: c.Algorithm, identity: c.Identity, features: slices.Sorted(slices.Values(c.Features))}
	for k, i := range order {
		if k > 0 && ids[i].text == ids[order[k-1]].text {
			return nil, &DuplicateError{ID: ids[i].text, First: order[k-1], Second: i}
		}
		t.ids = append(t.ids, ids[i])
		t.weights = append(t.weights, c.Backends[i].Weight)
		t.zones = append(t.zones, c.Backends[i].Zone)
	}
	if err := t.setMembers(c, order); err != nil {
		return nil, err
	}
	if err := t.setViews(c.Views); err != nil {
		return nil, err
	}
	t.sums = chainSums(t.algorithm.Version, t.identity, t.ids)
	return t, t.setPoints(c.MaxPoints)
}

func checkLimits(c Config) error {
	a := c.Algorithm
	switch {
	case a.Version < V1 || a.Version > V3:
		return &ConfigError{"algorithm.version", a.Version.String(), "not one of V1, V2, V3"}
	case a.PointsPerWeight < 1 || a.PointsPerWeight > MaxPointsPerWeight:
		return &ConfigError{"algorithm.pointsPerWeight", fmt.Sprint(a.PointsPerWeight), fmt.Sprintf("not within 1 to %d", MaxPointsPerWeight)}
	case a.Version == V1 && a.PointsPerWeight != V1PointsPerWeight:
		return &ConfigError{"algorithm.pointsPerWeight", fmt.Sprint(a.PointsPerWeight), fmt.Sprintf("V1 has %d", V1PointsPerWeight)}
	case len(c.Backends) > MaxBackends:
		return &ConfigError{"backends", fmt.Sprintf("%d backends", len(c.Backends)), fmt.Sprintf("the limit is %d", MaxBackends)}
	case len(c.Features) > MaxFeatures:
		return &ConfigError{"features", fmt.Sprintf("%d features", len(c.Features)), fmt.Sprintf("the limit is %d", MaxFeatures)}
	case c.MaxPoints > HardMaxPoints:
		return &ConfigError{"maxPoints", fmt.Sprint(c.MaxPoints), fmt.Sprintf("the limit is %d", HardMaxPoints)}
	}
	if err := checkTrimming(a, len(c.Views)); err != nil {
		return err
	}
	return checkFeatureNames(c.Features)
}

// checkTrimming checks what belongs to V3 and to no other version.
func checkTrimming(a Algorithm, views int) error {
	trims := a.Version == V3
	switch {
	case !trims && a.WeightUnit != 0:
		return &ConfigError{"algorithm.weightUnit", fmt.Sprint(a.WeightUnit), "only V3 has it"}
	case !trims && a.MaxImbalance != 0:
		return &ConfigError{"algorithm.maxImbalance", fmt.Sprint(a.MaxImbalance), "only V3 has it"}
	case !trims && views > 0:
		return &ConfigError{"views", fmt.Sprintf("%d views", views), "only V3 has them"}
	case trims && (a.WeightUnit < 1 || a.WeightUnit > MaxWeight):
		return &ConfigError{"algorithm.weightUnit", fmt.Sprint(a.WeightUnit), fmt.Sprintf("not within 1 to %d", MaxWeight)}
	case trims && (a.MaxImbalance < 1 || a.MaxImbalance > million):
		return &ConfigError{"algorithm.maxImbalance", fmt.Sprint(a.MaxImbalance), fmt.Sprintf("not within 1 to %d millionths", million)}
	case views > MaxViews:
		return &ConfigError{"views", fmt.Sprintf("%d views", views), fmt.Sprintf("the limit is %d", MaxViews)}
	}
	return nil
}

func checkFeatureNames(features []string) error {
	seen := make(map[string]bool, len(features))
	for i, name := range features {
		field := fmt.Sprintf("features[%d]", i)
		if reason := checkName(name); reason != "" {
			return &ConfigError{field, name, reason}
		}
		if seen[name] {
			return &ConfigError{field, name, "declared twice"}
		}
		seen[name] = true
	}
	return nil
}

func parseIDs(c Config) ([]id, error) {
	ids := make([]id, len(c.Backends))
	for i, b := range c.Backends {
		parsed, reason := c.Identity.parse(b.ID)
		if reason != "" {
			return nil, &ConfigError{fmt.Sprintf("backends[%d].id", i), b.ID, reason}
		}
		ids[i] = parsed
		if b.Weight > MaxWeight {
			return nil, &ConfigError{fmt.Sprintf("backends[%d].weight", i), fmt.Sprint(b.Weight), fmt.Sprintf("the limit is %d", MaxWeight)}
		}
		if b.Zone == "" {
			continue
		}
		if reason := checkName(b.Zone); reason != "" {
			return nil, &ConfigError{fmt.Sprintf("backends[%d].zone", i), b.Zone, reason}
		}
	}
	return ids, nil
}

func (t *table) setMembers(c Config, order []int) error {
	t.members = make([]bitmap, len(t.features))
	for f := range t.members {
		t.members[f] = newBitmap(len(order))
	}
	for k, i := range order {
		for _, name := range c.Backends[i].Features {
			f, ok := slices.BinarySearch(t.features, name)
			if !ok {
				return &ConfigError{fmt.Sprintf("backends[%d].features", i), name, "not a declared feature"}
			}
			t.members[f].set(k)
		}
	}
	return nil
}

// setPoints counts the points before any of them is computed. It cannot overflow: 2^16 × 10^6 × 10^5 < 2^63. The limit is
// compared with what the weights ask for, of which a backend on the fixed point gets less.
func (t *table) setPoints(limit uint64) error {
	if limit == 0 {
		limit = DefaultMaxPoints
	}
	var weight, points uint64
	for _, w := range t.weights {
		weight += uint64(w)
		points += t.algorithm.quota(w)
	}
	if points > limit {
		unit := uint64(max(t.algorithm.WeightUnit, 1))
		return &TooManyPointsError{Points: points, Limit: limit, Weight: (weight + unit - 1) / unit}
	}
	for i := range t.ids {
		t.points += t.chainPoints(i)
	}
	return nil
}

// quota returns how many points the weight of backend i gives it.
func (t *table) quota(i int) int { return int(t.algorithm.quota(t.weights[i])) }

// quota returns how many points a backend of this weight gets.
func (a Algorithm) quota(weight uint32) uint64 {
	points := uint64(weight) * uint64(a.PointsPerWeight)
	if a.Version != V3 || weight == 0 {
		return points
	}
	unit := uint64(a.WeightUnit)
	return max((points+unit/2)/unit, minPoints)
}

// checkName returns why s cannot be a name, or "".
func checkName(s string) string {
	if s == "" || len(s) > MaxNameBytes {
		return fmt.Sprintf("has %d bytes, not 1 to %d", len(s), MaxNameBytes)
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return fmt.Sprintf("byte %d is not printable ASCII", i)
		}
	}
	return ""
}
