// SPDX-License-Identifier: Apache-2.0

package cli

// PlanOutcome is what a plan comes to.
type PlanOutcome string

const (
	// PlanFirst means that nothing is published yet, so every key gets its first owner.
	PlanFirst PlanOutcome = "First"
	// PlanMoves means that keys change owner, for all readers or for those that ask for some features.
	PlanMoves PlanOutcome = "Moves"
	// PlanBytesOnly means that no key changes owner in any view that was compared, and the snapshot is another.
	PlanBytesOnly PlanOutcome = "BytesOnly"
	// PlanAddressesOnly means that the snapshot is the same, and backends are dialled elsewhere.
	PlanAddressesOnly PlanOutcome = "AddressesOnly"
	// PlanUnchanged means that nothing would be published.
	PlanUnchanged PlanOutcome = "Unchanged"
)

// PlanReport is what "plan" prints. Shares and ratios are fractions, of nine and six decimals.
type PlanReport struct {
	// Ring is namespace and name of the HashRing, From what its ring is compared with, as text.
	Ring    string      `json:"ring"`
	From    string      `json:"from"`
	Outcome PlanOutcome `json:"outcome"`
	// Features are those of --features: what follows, Views apart, is then about that view.
	Features []string `json:"features,omitempty"`
	// Moved is the share of the key space that changes owner, MovedPositions the same, exactly: of 2^32 positions.
	Moved          float64 `json:"moved"`
	MovedPositions uint64  `json:"movedPositions"`
	// Before is absent where nothing is published yet.
	Before *PlannedRing `json:"before,omitempty"`
	After  PlannedRing  `json:"after"`
	// Backends are those that gain or lose, in ring order; those that are gone come first.
	Backends []BackendChange `json:"backends,omitempty"`
	// Pairs are the largest moves from one backend to another, at most as many as --pairs says; PairCount counts all.
	Pairs     []PairReport `json:"pairs,omitempty"`
	PairCount int          `json:"pairCount"`
	// Views are the views in which something else moves than in the ring of all backends; none with --features.
	Views []ViewMovement `json:"views,omitempty"`
	// Addresses are the named backends that keep their keys and are dialled elsewhere.
	Addresses []AddressChange `json:"addresses,omitempty"`
	// Notes are what else matters, as sentences.
	Notes []string `json:"notes,omitempty"`
}

// PlannedRing is the ring before or after.
type PlannedRing struct {
	Snapshot RingReport `json:"snapshot"`
	// PartOfConfigMap is the length of the snapshot over what a ConfigMap takes.
	PartOfConfigMap float64 `json:"partOfConfigMap"`
	// ChunksInUse is how many ConfigMaps it takes. Chunks is how many the manifest allows, spec.publication.chunks, and
	// PartOfChunks the length over what those take; both are absent before the change.
	ChunksInUse  int     `json:"chunksInUse"`
	Chunks       int     `json:"chunks,omitempty"`
	PartOfChunks float64 `json:"partOfChunks,omitempty"`
	// View is there with --features.
	View *ViewReport `json:"view,omitempty"`
	// WorstView is the declared view of the largest MaxOverAverage; with V3 only.
	WorstView *ViewBalance `json:"worstView,omitempty"`
}

// ViewBalance is the largest ratio of share to target in a view.
type ViewBalance struct {
	Features       []string `json:"features"`
	MaxOverAverage float64  `json:"maxOverAverage"`
}

// BackendChange is what a backend gains and loses.
type BackendChange struct {
	ID string `json:"id"`
	// WeightBefore is absent for a backend that is new, WeightAfter for one that is gone.
	WeightBefore *uint32 `json:"weightBefore,omitempty"`
	WeightAfter  *uint32 `json:"weightAfter,omitempty"`
	// ShareBefore and ShareAfter are what it owns, Gained and Lost what it owns only after and only before.
	ShareBefore float64 `json:"shareBefore"`
	ShareAfter  float64 `json:"shareAfter"`
	Gained      float64 `json:"gained"`
	Lost        float64 `json:"lost"`
}

// PairReport is what moves from one backend to another. From is absent where the keys had no owner, To where they have none.
type PairReport struct {
	From  string  `json:"from,omitempty"`
	To    string  `json:"to,omitempty"`
	Moved float64 `json:"moved"`
}

// ViewMovement is what moves for readers that ask for some features.
type ViewMovement struct {
	Features       []string `json:"features"`
	Moved          float64  `json:"moved"`
	MovedPositions uint64   `json:"movedPositions"`
}

// AddressChange is a backend that is dialled elsewhere.
type AddressChange struct {
	ID     string `json:"id"`
	Before string `json:"before"`
	After  string `json:"after"`
}
