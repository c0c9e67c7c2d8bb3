// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HashRingStatus is what the operator published and what it found on the way.
type HashRingStatus struct {
	// observedGeneration is the generation of spec that the status was computed from; -1 before the first time.
	// +optional
	// +default=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// active is the published ring; absent until the first one is published.
	// +optional
	Active *ActiveRing `json:"active,omitempty"`

	// candidate is the ring that spec asks for and that waits, because it moves keys between backends that stay, or that a RingMigration
	// goes to; absent while nothing waits, and when spec asks for the published ring again, whatever is still published beside it.
	// +optional
	Candidate *CandidateRing `json:"candidate,omitempty"`

	// pending is what the endpoints that wait for membership.joinDelay or membership.leaveDelay will move; absent while none does.
	// +optional
	Pending *PendingChange `json:"pending,omitempty"`

	// hold says what keeps the ring from following spec or its sources; absent while nothing does.
	// +optional
	Hold *Hold `json:"hold,omitempty"`

	// members are the endpoints whose joinDelay or leaveDelay runs, in the order of their identities: at most 8192, which is when all of
	// 4096 backends are replaced.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	Members []MemberTransition `json:"members,omitempty"`

	// backends counts the backends of the published ring.
	// +optional
	Backends *BackendCounts `json:"backends,omitempty"`

	// snapshot gives the size of the published snapshot.
	// +optional
	Snapshot *SnapshotSize `json:"snapshot,omitempty"`

	// balance says how evenly the published ring spreads the key space.
	// +optional
	Balance *Balance `json:"balance,omitempty"`

	// routing is the state of the routing file.
	// +optional
	Routing *Routing `json:"routing,omitempty"`

	// consumers says what the pods that spec.consumers selects have of what is published; absent where spec has none, and until
	// all of them have been asked for the first time.
	// +optional
	Consumers *ConsumerStatus `json:"consumers,omitempty"`

	// refresh says how many pods were touched for what is published; absent where spec.consumers.refresh is not TouchPods.
	// +optional
	Refresh *RefreshStatus `json:"refresh,omitempty"`

	// migration is the RingMigration that has the ring, and what it wants published; absent while none has it.
	// +optional
	Migration *RingLock `json:"migration,omitempty"`

	// loadWeights are the factors on the backends' weights that a WeightPolicy gives; absent while none does.
	// +optional
	LoadWeights *LoadWeights `json:"loadWeights,omitempty"`

	// warnings are the oddities of the published ring that do not keep it from being used, at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Warnings []Warning `json:"warnings,omitempty"`

	// conditions are the states of the ring: Ready, BackendsResolved, Published, Held, MigrationRequired and Applied always,
	// Refreshed with spec.consumers.refresh TouchPods, Reconciling and Stalled while they hold.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ActiveRing is a published ring.
type ActiveRing struct {
	// revision is the number of the revision, 1 for the first ring of a HashRing. It never goes back.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision"`

	// digest is the SHA-256 of the snapshot, as "sha256:" and 64 hexadecimal digits. Equal rings have equal digests.
	// +required
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`

	// slot is where the snapshot is published: a for the ConfigMap <name>-a, b for <name>-b.
	// +required
	Slot Slot `json:"slot"`

	// algorithm is what the ring was built with.
	// +required
	Algorithm ActiveAlgorithm `json:"algorithm"`

	// movement is the part of the key space that has another owner than on the ring that was published before, in percent with
	// two decimals, such as "7.31%", in the view of all backends. It is exact: arc lengths, not samples. Absent for the first ring, and between rings of more than 33554432
	// points together.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Movement string `json:"movement,omitempty"`

	// publishedAt is when what is published last changed, be it the snapshot or the routing file. What was edited or deleted
	// and restored has not changed.
	// +required
	PublishedAt metav1.MicroTime `json:"publishedAt"`
}

// ActiveAlgorithm is the algorithm of a published ring. Unlike spec's it has no defaults: it states what was used.
type ActiveAlgorithm struct {
	// version is the algorithm version.
	// +required
	Version AlgorithmVersion `json:"version"`

	// pointsPerWeight is the number of points for each unit of a backend's weight.
	// +required
	PointsPerWeight int32 `json:"pointsPerWeight"`

	// weightUnit is the weight that got pointsPerWeight points; absent with V1 and V2.
	// +optional
	WeightUnit int32 `json:"weightUnit,omitempty"`

	// maxImbalance is the limit that the ring was trimmed to, in percent without superfluous digits, such as "0.5%"; absent
	// with V1 and V2.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	MaxImbalance string `json:"maxImbalance,omitempty"`
}

// Slot is one of the two places in which a snapshot can be published.
//
// +kubebuilder:validation:Enum=a;b
type Slot string

const (
	// SlotA is the ConfigMap <name>-a.
	SlotA Slot = "a"

	// SlotB is the ConfigMap <name>-b.
	SlotB Slot = "b"
)

// BackendCounts counts the backends of a ring.
type BackendCounts struct {
	// total is the number of backends in the snapshot's table: placed + drained.
	// +required
	Total int32 `json:"total"`

	// placed is the number of backends with a weight above 0, which have points on the ring.
	// +required
	Placed int32 `json:"placed"`

	// drained is the number of backends with weight 0, which own nothing.
	// +required
	Drained int32 `json:"drained"`

	// down is the number of placed backends that routing.json lists as down, because their endpoint is gone or does not serve.
	// +optional
	Down int32 `json:"down,omitempty"`

	// joining is the number of endpoints that are ready and wait to be placed.
	// +optional
	Joining int32 `json:"joining,omitempty"`

	// leaving is the number of placed backends whose endpoint is gone or not ready and that wait to be removed.
	// +optional
	Leaving int32 `json:"leaving,omitempty"`

	// reference is the number of backends that spec.membership.maxRemoved is a part of: the most that served since the first of
	// those began to leave that leave now.
	// +optional
	Reference int32 `json:"reference,omitempty"`
}

// CandidateRing is a ring that has been built and waits.
type CandidateRing struct {
	// revision is the number that the ring would have if it were published now, or has where it is published.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision"`

	// digest is the SHA-256 of its snapshot, as that of active.
	// +required
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`

	// algorithm is what the ring was built with.
	// +required
	Algorithm ActiveAlgorithm `json:"algorithm"`

	// movement is the part of the key space that has another owner than on the published ring, in percent with two decimals,
	// such as "7.31%", in the view of all backends. It is exact: arc lengths, not samples.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Movement string `json:"movement"`

	// reason is why it waits: AlgorithmChanged or MovementBudget.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason ConditionReason `json:"reason"`

	// points is the number of points on the ring.
	// +required
	Points int64 `json:"points"`

	// bytes is the size of its snapshot.
	// +required
	Bytes int64 `json:"bytes"`

	// maxOverAverage is the largest share of a backend relative to what its weight asks for, as in balance.
	// +required
	// +kubebuilder:validation:MaxLength=32
	MaxOverAverage string `json:"maxOverAverage"`

	// slot is where the snapshot is published while a RingMigration goes to it; absent while it is not published.
	// +optional
	Slot Slot `json:"slot,omitempty"`

	// weightLost is the part of the published ring's weight whose backends routing.json lists as down while both rings stay as they are,
	// in percent with two decimals, such as "3.12%": those that are gone, do not serve, or were taken out of spec or drained since. Weight
	// is that of the backends in the published ring. Readers pass over them in both rings. Absent while it is not published.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	WeightLost string `json:"weightLost,omitempty"`
}

// PendingChange is what waits for the delays of membership.
type PendingChange struct {
	// movement is the part of the key space that has another owner once all of them are over, in percent with two decimals, in the
	// view of all backends.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Movement string `json:"movement"`

	// nextAt is when the first of the delays is over.
	// +required
	NextAt metav1.Time `json:"nextAt"`
}

// Hold says what keeps the ring from changing.
type Hold struct {
	// reason is that of condition Held.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason ConditionReason `json:"reason"`

	// since is when the hold began.
	// +required
	Since metav1.Time `json:"since"`

	// token names what is held: kubectl hashring release confirms it, and nothing that came to it later. Absent where
	// a release does not end the hold.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Token string `json:"token,omitempty"`

	// backends are the identities of the backends that the hold is about, sorted, the first 16 of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=320
	Backends []string `json:"backends,omitempty"`

	// count is how many backends the hold is about.
	// +optional
	Count int32 `json:"count,omitempty"`
}

// MemberState says which delay of an endpoint runs.
//
// +kubebuilder:validation:Enum=Joining;Leaving
type MemberState string

const (
	// MemberJoining is an endpoint that is ready and not on the ring yet.
	MemberJoining MemberState = "Joining"

	// MemberLeaving is a backend on the ring whose endpoint is gone or not ready.
	MemberLeaving MemberState = "Leaving"
)

// MemberTransition is an endpoint whose delay runs. The operator keeps its clocks here, so that it can be restarted.
type MemberTransition struct {
	// id is the identity of the backend: its address and port, or its name with identity Name.
	// +required
	// +kubebuilder:validation:MaxLength=320
	ID string `json:"id"`

	// state says which delay runs.
	// +required
	State MemberState `json:"state"`

	// since is when it began.
	// +required
	Since metav1.MicroTime `json:"since"`
}

// Routing is the state of a ring's routing file.
type Routing struct {
	// generation is the number of the routing file's last change. Readers never go back to a lower one.
	// +required
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation"`

	// digest is the SHA-256 of routing.json in lower-case hexadecimal behind "sha256:". A file that was lost is written
	// again with the same generation when its bytes are the same.
	// +required
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`

	// leaderEpoch numbers the operator that wrote the file among those that led; absent where nobody elects a leader. Readers
	// refuse the file of a lower one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
}

// Warning is an oddity of a ring that does not keep it from being used.
type Warning struct {
	// reason is the machine-readable cause.
	// +required
	Reason WarningReason `json:"reason"`

	// message names the backends, the view or the fields and says what would mend it, in at most 1024 characters.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}
