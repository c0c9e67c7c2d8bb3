// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/ringwright/ringwright/internal/migrationapi"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TraceReport is what "migration trace" prints.
type TraceReport struct {
	// Ring is namespace and name of the HashRing, Generation that of its routing.json.
	Ring       string `json:"ring"`
	Generation int64  `json:"generation"`
	// Datacenter is that of the consumer; absent for one that was told none. BasisPoints is its share in the split, of 10000.
	Datacenter  string `json:"datacenter,omitempty"`
	BasisPoints int    `json:"basisPoints"`
	// Seed is that of the split; absent where there is none.
	Seed *uint32 `json:"seed,omitempty"`
	// Stable and Candidate are the rings; Candidate is absent where none is published.
	Stable    TraceRing  `json:"stable"`
	Candidate *TraceRing `json:"candidate,omitempty"`
	// Keys are the keys, in the order in which they were given.
	Keys []KeyTrace `json:"keys"`
}

// TraceRing is a published ring.
type TraceRing struct {
	Slot    string `json:"slot"`
	Digest  string `json:"digest"`
	Version string `json:"version"`
}

// KeyTrace is where a key goes, and why.
type KeyTrace struct {
	// Key is the key as text, KeyHex in lower-case hex with --hex and where it is not valid UTF-8.
	Key    *string `json:"key,omitempty"`
	KeyHex *string `json:"keyHex,omitempty"`
	// Hash is the key's position on the ring, Bucket its bucket in the split; absent where there is none.
	Hash   uint32 `json:"keyHash"`
	Bucket *int   `json:"bucket,omitempty"`
	// StableOwner and CandidateOwner are who answers on each ring; absent where nobody does.
	StableOwner    *Owner `json:"stableOwner,omitempty"`
	CandidateOwner *Owner `json:"candidateOwner,omitempty"`
	// Decision is stable or candidate, Backend who answers, Why the reason, and Changes what would change it.
	Decision string `json:"decision"`
	Backend  Owner  `json:"backend"`
	Why      string `json:"why"`
	Changes  string `json:"changes"`
	// CandidateIn are the datacenters of the split whose share takes the key to the candidate, sorted.
	CandidateIn []string `json:"candidateIn,omitempty"`
}

// tracedPair are the published rings with the views that are asked.
type tracedPair struct {
	file       routing.File
	datacenter string
	features   []string
	stable     *tracedSide
	// candidate is nil where none is published.
	candidate *tracedSide
}

type tracedSide struct {
	opened *opened
	view   *ring.View
	down   map[string]bool
}

// openPair opens both rings of a publication.
func openPair(p *publication, datacenter string, features []string) (*tracedPair, error) {
	stable, err := p.open()
	if err != nil {
		return nil, err
	}
	pair := &tracedPair{file: *stable.file, datacenter: datacenter, features: features}
	down := map[string]bool{}
	for _, id := range stable.file.Down {
		down[id] = true
	}
	view, err := stable.view(features)
	if err != nil {
		return nil, err
	}
	pair.stable = &tracedSide{opened: stable, view: view, down: down}
	ref := stable.file.Candidate
	if ref == nil {
		return pair, nil
	}
	r, err := p.openReference(*ref)
	if err != nil {
		return nil, fmt.Errorf("the candidate: %w", err)
	}
	if err := checkAddresses(*stable.file, stable.ring, r); err != nil {
		return nil, err
	}
	pair.candidate = &tracedSide{opened: &opened{ring: r, origin: stable.origin, file: stable.file}, down: down}
	if view, err := r.View(features...); err == nil { // A feature that it does not know leaves it without an answer, and the stable ring gives one.
		pair.candidate.view = view
	}
	return pair, nil
}

// owner returns who answers on a ring: the first backend that is not down or, where all are, the owner. It is nil where the ring has
// nobody with the features.
func (s *tracedSide) owner(hash uint32) (owner *Owner, passed bool) {
	if s == nil || s.view == nil {
		return nil, false
	}
	owners := s.view.AppendOwners(nil, hash, 1, nil)
	if len(owners) == 0 {
		return nil, false
	}
	if up := s.view.AppendOwners(nil, hash, 1, func(i int) bool { return s.down[s.opened.ring.ID(i)] }); len(up) > 0 {
		passed, owners = up[0] != owners[0], up
	}
	i := owners[0]
	return &Owner{ID: s.opened.ring.ID(i), Address: s.opened.address(i), Zone: s.opened.ring.Zone(i)}, passed
}

func (p *tracedPair) report() *TraceReport {
	file := p.file
	report := &TraceReport{
		Ring: file.Ring, Generation: file.Generation, Datacenter: p.datacenter, BasisPoints: file.Split.In(p.datacenter),
		Stable: TraceRing{string(file.Stable.Slot), file.Stable.Digest, file.Stable.Version}, Keys: []KeyTrace{},
	}
	if c := file.Candidate; c != nil {
		report.Candidate = &TraceRing{string(c.Slot), c.Digest, c.Version}
	}
	if file.Split != nil {
		report.Seed = &file.Split.Seed
	}
	return report
}

// trace says where a key goes.
func (p *tracedPair) trace(key []byte, asHex bool) (KeyTrace, error) {
	hash := ring.Hash(key)
	k := KeyTrace{Hash: hash, Decision: "stable"}
	if asHex || !utf8.Valid(key) {
		text := hex.EncodeToString(key)
		k.KeyHex = &text
	} else {
		text := string(key)
		k.Key = &text
	}
	var passedStable, passedCandidate bool
	k.StableOwner, passedStable = p.stable.owner(hash)
	k.CandidateOwner, passedCandidate = p.candidate.owner(hash)
	p.decide(&k)
	chosen, passed := k.StableOwner, passedStable
	if k.Decision == "candidate" {
		chosen, passed = k.CandidateOwner, passedCandidate
	}
	if chosen == nil {
		return k, p.stable.opened.answerable(p.stable.view, p.features)
	}
	k.Backend = *chosen
	if passed {
		k.Why += "; the owner is down, so the next backend answers"
	}
	return k, nil
}

// decide sets the decision and the reason.
func (p *tracedPair) decide(k *KeyTrace) {
	split := p.file.Split
	if p.candidate == nil || split == nil {
		k.Why, k.Changes = "no split is published", "a migration that publishes a candidate and a split"
		return
	}
	bucket, share := routing.Bucket(k.Hash, split.Seed), split.In(p.datacenter)
	k.Bucket = &bucket
	for _, name := range slices.Sorted(maps.Keys(split.BasisPoints)) {
		if name != routing.AnyDatacenter && bucket < split.BasisPoints[name] {
			k.CandidateIn = append(k.CandidateIn, name)
		}
	}
	from := migrationapi.Percent(bucket + 1)
	switch {
	case bucket >= share:
		k.Why = fmt.Sprintf("bucket %d is not below the %d basis points of %s", bucket, share, p.place())
		k.Changes = fmt.Sprintf("from %s on it goes to the candidate", from)
	case k.CandidateOwner == nil:
		k.Why = fmt.Sprintf("bucket %d is below the %d basis points of %s, but the candidate has no backend with the features", bucket, share, p.place())
		k.Changes = "a candidate with such a backend"
	default:
		k.Decision = "candidate"
		k.Why = fmt.Sprintf("bucket %d is below the %d basis points of %s", bucket, share, p.place())
		k.Changes = fmt.Sprintf("below %s it stays on the stable ring", from)
	}
}

func (p *tracedPair) place() string {
	if p.datacenter == "" {
		return "consumers without a datacenter"
	}
	return p.datacenter
}

func (r *TraceReport) print(out io.Writer) {
	rows(out, func(w io.Writer) {
		printf(w, "ring\t%s, generation %d\n", r.Ring, r.Generation)
		printf(w, "stable\tslot %s, %s, %s\n", r.Stable.Slot, shortDigest(r.Stable.Digest), r.Stable.Version)
		if c := r.Candidate; c != nil {
			printf(w, "candidate\tslot %s, %s, %s\n", c.Slot, shortDigest(c.Digest), c.Version)
		} else {
			printf(w, "candidate\tnone is published\n")
		}
		printf(w, "datacenter\t%s, %s of the keys go to the candidate\n", datacenterName(r.Datacenter), migrationapi.Percent(r.BasisPoints))
	})
	for _, k := range r.Keys {
		printf(out, "\n%s\n", k.name())
		rows(out, func(w io.Writer) {
			bucket := "-"
			if k.Bucket != nil {
				bucket = fmt.Sprintf("%d of 0 to %d", *k.Bucket, routing.MaxBasisPoints-1)
			}
			printf(w, "  hash\t%08x\n  bucket\t%s\n", k.Hash, bucket)
			same := ""
			if k.StableOwner != nil && k.CandidateOwner != nil && k.StableOwner.ID == k.CandidateOwner.ID {
				same = ", the same: the key does not move"
			}
			printf(w, "  stable owner\t%s\n  candidate owner\t%s%s\n", ownerText(k.StableOwner), ownerText(k.CandidateOwner), same)
			printf(w, "  goes to\t%s, on the %s ring\n  because\t%s\n  changes\t%s\n", ownerText(&k.Backend), k.Decision, k.Why, k.Changes)
			if len(k.CandidateIn) > 0 {
				printf(w, "  candidate in\t%s\n", clip(k.CandidateIn, maxStageNames))
			}
		})
	}
}

func (k KeyTrace) name() string {
	if k.KeyHex != nil {
		return *k.KeyHex
	}
	return printable([]byte(*k.Key))
}

func ownerText(o *Owner) string {
	switch {
	case o == nil:
		return "-"
	case o.Address != "" && o.Address != o.ID:
		return o.ID + " at " + o.Address
	}
	return cmp.Or(o.ID, "-")
}
