// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// moves says whether a key gets another owner.
func (r *PlanReport) moves() bool { return r.Outcome == PlanFirst || r.Outcome == PlanMoves }

// comparison is two rings and what is asked about them.
type comparison struct {
	before, after *planSide
	features      []string
	pairs         int
}

func (c comparison) report() (*PlanReport, error) {
	first := c.before.ring == nil
	old, err := c.oldRing()
	if err != nil {
		return nil, err
	}
	from, to, err := c.views(old, c.features, first)
	if err != nil {
		return nil, err
	}
	report := &PlanReport{Ring: c.after.origin, From: c.before.origin, Features: c.features, After: describePlanned(c.after, to, c.features)}
	if c.after.encoding == ring.EncodingRecipe && (first || c.before.encoding != ring.EncodingRecipe) {
		report.Notes = []string{recipeNote(c.after.ring.PointCount())}
	}
	if !first {
		before := describePlanned(c.before, from, c.features)
		report.Before = &before
		report.Addresses = c.addressChanges()
		report.Notes = append(report.Notes, c.notes()...)
	}
	if first || !c.same() {
		c.addMovement(report, from, to)
	}
	report.Outcome = c.outcome(report)
	return report, nil
}

// same says that both rings have the same points and backends, so that nothing can move.
func (c comparison) same() bool {
	return c.before.digest == c.after.digest || c.before.ring == c.after.ring ||
		bytes.Equal(c.before.ring.Recipe(), c.after.ring.Recipe())
}

// addMovement compares the rings, point by point.
func (c comparison) addMovement(report *PlanReport, from, to *ring.View) {
	movement := ring.Compare(from, to)
	report.Moved, report.MovedPositions = share(movement.Total), movement.Total
	report.Backends = backendChanges(from, to, movement)
	if report.Before != nil && len(c.features) == 0 {
		report.Views = viewMovements(from.Ring(), to.Ring(), movement.Total)
	}
	pairs := ring.ComparePairs(from, to)
	report.PairCount = len(pairs)
	for _, p := range pairs[:min(len(pairs), c.pairs)] {
		report.Pairs = append(report.Pairs, PairReport{From: p.From, To: p.To, Moved: share(p.Positions)})
	}
}

// oldRing returns the ring before; where there is none, one without a backend.
func (c comparison) oldRing() (*ring.Ring, error) {
	if c.before.ring != nil {
		return c.before.ring, nil
	}
	return ring.Build(ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1}, Identity: c.after.ring.Identity(), Features: c.after.ring.Features(),
	})
}

// views returns the view of features in both rings.
func (c comparison) views(old *ring.Ring, features []string, first bool) (from, to *ring.View, err error) {
	if to, err = c.after.ring.View(features...); err != nil {
		return nil, nil, fmt.Errorf("--features, after the change: %w", err)
	}
	if old == c.after.ring {
		return to, to, c.answerable(to, to, first)
	}
	if from, err = old.View(features...); err != nil {
		return nil, nil, fmt.Errorf("--features, before the change: %w", err)
	}
	return from, to, c.answerable(from, to, first)
}

// answerable returns an error where nothing can own a key in the view, before or after.
func (c comparison) answerable(from, to *ring.View, first bool) error {
	if !first && to.Len() == 0 && from.Len() == 0 {
		return fmt.Errorf("--features %s: no backend with a weight above 0 has all of them, before or after", strings.Join(c.features, ","))
	}
	return nil
}

func (c comparison) outcome(r *PlanReport) PlanOutcome {
	switch {
	case r.Before == nil:
		return PlanFirst
	case r.MovedPositions > 0 || len(r.Views) > 0:
		return PlanMoves
	case c.before.digest != c.after.digest:
		return PlanBytesOnly
	case len(r.Addresses) > 0:
		return PlanAddressesOnly
	default:
		return PlanUnchanged
	}
}

func describePlanned(side *planSide, view *ring.View, features []string) PlannedRing {
	p := PlannedRing{
		Snapshot: side.describe(), PartOfConfigMap: round(float64(side.bytes)/plan.ChunkBytes, 6),
		Chunks: side.chunks, ChunksInUse: chunksOf(uint64(side.bytes)),
	}
	if side.chunks > 0 {
		p.PartOfChunks = round(float64(side.bytes)/float64(side.chunks)/plan.ChunkBytes, 6)
	}
	if len(features) > 0 {
		stats := view.Stats()
		p.View = &ViewReport{Features: features, Backends: stats.Backends, Points: stats.Points, Balance: describeBalance(stats)}
	}
	for _, names := range side.ring.Views() {
		v, err := side.ring.View(names...)
		if err != nil {
			continue // A ring has the features of its own views.
		}
		ratio := round(v.Stats().MaxOverAverage, 6)
		if p.WorstView == nil || ratio > p.WorstView.MaxOverAverage {
			p.WorstView = &ViewBalance{Features: append([]string{}, names...), MaxOverAverage: ratio}
		}
	}
	return p
}

// describe describes the snapshot, which is the recipe of the ring where that was opened from its points.
func (s *planSide) describe() RingReport {
	report := describeRing(s.ring)
	report.Warnings = append(describeWarnings(s.warnings), report.Warnings...)
	if s.encoding == s.ring.Encoding() {
		return report
	}
	for i, section := range report.Sections {
		if section.Name == "points" {
			report.Sections[i] = SectionReport{Name: "fingerprint", Bytes: section.Bytes + s.bytes - report.Bytes}
		}
	}
	report.Digest, report.Encoding, report.Bytes = s.digest, s.encoding.String(), s.bytes
	report.BytesPerPoint = round(float64(report.Bytes)/float64(report.Points), 2)
	return report
}

// backendChanges describes the backends that gain or lose.
func backendChanges(from, to *ring.View, movement ring.Movement) []BackendChange {
	sharesBefore, sharesAfter := from.Shares(), to.Shares()
	before, after := indexOf(from.Ring()), indexOf(to.Ring())
	list := make([]BackendChange, len(movement.Backends))
	for k, m := range movement.Backends {
		b := BackendChange{ID: m.ID, Gained: share(m.Gained), Lost: share(m.Lost)}
		if i, ok := before[m.ID]; ok {
			weight := from.Ring().Weight(i)
			b.WeightBefore, b.ShareBefore = &weight, share(sharesBefore[i])
		}
		if i, ok := after[m.ID]; ok {
			weight := to.Ring().Weight(i)
			b.WeightAfter, b.ShareAfter = &weight, share(sharesAfter[i])
		}
		list[k] = b
	}
	// Those that are gone, then those that stay or come, each in ring order: the movement has them by the ring before.
	position := func(b BackendChange) int {
		if i, ok := after[b.ID]; ok {
			return i
		}
		return -1
	}
	slices.SortStableFunc(list, func(a, b BackendChange) int { return cmp.Compare(position(a), position(b)) })
	return list
}

func indexOf(r *ring.Ring) map[string]int {
	index := make(map[string]int, r.Len())
	for i := range r.Len() {
		index[r.ID(i)] = i
	}
	return index
}

// viewMovements compares the views of the single features and those that are declared, as far as both rings can be asked for
// them, and returns those in which something else moves than in the whole ring.
func viewMovements(old, new *ring.Ring, whole uint64) []ViewMovement {
	var list []ViewMovement
	for _, features := range comparedViews(old, new) {
		from, err := old.View(features...)
		if err != nil {
			continue // The feature is new: whoever asks for it gets an answer for the first time.
		}
		to, err := new.View(features...)
		if err != nil {
			continue // It is gone: notes says so.
		}
		if m := ring.Compare(from, to); m.Total != whole {
			list = append(list, ViewMovement{Features: features, Moved: share(m.Total), MovedPositions: m.Total})
		}
	}
	return list
}

// comparedViews returns the sets of features that matter in either ring: few features first, then by name.
func comparedViews(old, new *ring.Ring) [][]string {
	var sets [][]string
	for _, r := range []*ring.Ring{old, new} {
		for _, name := range r.Features() {
			sets = append(sets, []string{name})
		}
		for _, names := range r.Views() {
			if len(names) > 0 {
				sets = append(sets, names)
			}
		}
	}
	slices.SortFunc(sets, func(a, b []string) int { return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(a, b)) })
	return slices.CompactFunc(sets, slices.Equal[[]string])
}

func (c comparison) addressChanges() []AddressChange {
	var list []AddressChange
	for i := range c.after.ring.Len() {
		id := c.after.ring.ID(i)
		before, after := c.before.addresses[id], c.after.addresses[id]
		if before != "" && before != after {
			list = append(list, AddressChange{ID: id, Before: before, After: after})
		}
	}
	return list
}

// notes returns what the numbers do not say.
func (c comparison) notes() []string {
	var notes []string
	old, new := c.before.ring, c.after.ring
	if name := c.before.name; name != "" && name != c.after.name {
		notes = append(notes, fmt.Sprintf("%s is of another ring, HashRing %s", c.before.origin, name))
	}
	if old.Identity() != new.Identity() {
		notes = append(notes, fmt.Sprintf("the identity changes from %s to %s: the API server refuses that", old.Identity(), new.Identity()))
	}
	for _, name := range old.Features() {
		if !slices.Contains(new.Features(), name) {
			notes = append(notes, fmt.Sprintf("feature %s is gone: a lookup that asks for it will fail", name))
		}
	}
	for _, name := range new.Features() {
		if !slices.Contains(old.Features(), name) {
			notes = append(notes, fmt.Sprintf("feature %s is new", name))
		}
	}
	if new.Identity() == ring.IdentityName && c.before.addresses == nil {
		notes = append(notes, fmt.Sprintf("%s does not hold addresses: they were not compared", c.before.origin))
	}
	return notes
}

// recipeNote says what a snapshot without points asks of those who read it.
func recipeNote(points int) string {
	note := fmt.Sprintf("the snapshot becomes a recipe: every reader then builds %s points in memory", groupDigits(float64(points)))
	if points > ring.DefaultMaxPoints {
		note += fmt.Sprintf(", and refuses more than %s unless --max-points of the agent, or MaxPoints of package ring, says so",
			groupDigits(ring.DefaultMaxPoints))
	}
	return note
}

// share is a part of the key space with nine decimals, as in the other reports.
func share(positions uint64) float64 { return round(float64(positions)/ring.KeySpace, 9) }
