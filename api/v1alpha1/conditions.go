// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionType is the type of a condition in a status.
type ConditionType string

// ConditionReason is the machine-readable cause in a condition.
type ConditionReason string

const (
	// ConditionReady says whether the published ring is what spec asks for, or safely on its way there.
	//
	// Reasons for True: ReasonRingPublished, ReasonCoalescing.
	// Reasons for False: ReasonNoBackends, ReasonInvalidSpec, ReasonDuplicateIdentity, ReasonSnapshotTooLarge,
	// ReasonNameConflict, ReasonPublishFailed.
	ConditionReady ConditionType = "Ready"

	// ConditionPublished says whether the snapshot of the revision that spec asks for is in the cluster, byte for byte.
	// While it is False, readers keep the ring in status.active.
	//
	// Reasons for True: ReasonRingPublished.
	// Reasons for False: ReasonCoalescing, ReasonNoBackends, ReasonInvalidSpec, ReasonDuplicateIdentity,
	// ReasonSnapshotTooLarge, ReasonNameConflict, ReasonPublishFailed.
	ConditionPublished ConditionType = "Published"

	// ConditionReconciling is kstatus's sign of work in progress. It is present, and True, only while the operator is
	// on its way to what spec asks for and expects to get there without help.
	//
	// Reasons for True: ReasonCoalescing, ReasonPublishFailed.
	ConditionReconciling ConditionType = "Reconciling"

	// ConditionStalled is kstatus's sign of work that cannot go on. It is present, and True, only while somebody has to
	// change spec or the cluster before the operator can go on.
	//
	// Reasons for True: ReasonNoBackends, ReasonInvalidSpec, ReasonDuplicateIdentity, ReasonSnapshotTooLarge,
	// ReasonNameConflict.
	ConditionStalled ConditionType = "Stalled"
)

const (
	// ReasonRingPublished means that the ring that spec asks for is published, and that what is in the cluster equals
	// it.
	ReasonRingPublished ConditionReason = "RingPublished"

	// ReasonCoalescing means that a newer ring waits for spec.publication.minInterval to pass since the last
	// publication. The newest state is always published in the end.
	ReasonCoalescing ConditionReason = "Coalescing"

	// ReasonNoBackends means that spec has no backend with a weight above 0, so that the ring would own no key. The
	// last good ring stays published.
	ReasonNoBackends ConditionReason = "NoBackends"

	// ReasonInvalidSpec means that spec breaks a rule that the schema could not check, or was admitted under an older
	// schema. The message names the field. The last good ring stays published.
	ReasonInvalidSpec ConditionReason = "InvalidSpec"

	// ReasonDuplicateIdentity means that two backends have the same identity, so that all of their points would be the
	// same, or the same name. The message names both. The last good ring stays published.
	ReasonDuplicateIdentity ConditionReason = "DuplicateIdentity"

	// ReasonSnapshotTooLarge means that the snapshot does not fit into spec.publication.chunks ConfigMaps, that the ring
	// has more points than the operator builds, or that the routing file is too large. The message gives size, points
	// and what would fit. The last good ring stays published.
	ReasonSnapshotTooLarge ConditionReason = "SnapshotTooLarge"

	// ReasonPublishFailed means that the API server refused or did not answer a write. The operator tries again.
	ReasonPublishFailed ConditionReason = "PublishFailed"

	// ReasonNameConflict means that an object of the name that the operator would publish exists and is not the
	// operator's. It is left alone; the message names it.
	ReasonNameConflict ConditionReason = "NameConflict"
)

// WarningReason is the machine-readable cause in a warning about a ring that is published all the same.
//
// +kubebuilder:validation:Enum=BackendOnFixedPoint;BackendShadowed;TieOrderBias;ImbalanceOverLimit;FieldWithoutEffect;LargeRecipe
type WarningReason string

const (
	// WarningBackendOnFixedPoint means that a backend's hash is the fixed point of the point chain, so that it has one
	// point on the ring at any weight. Another address, port or name mends it.
	WarningBackendOnFixedPoint WarningReason = "BackendOnFixedPoint"

	// WarningBackendShadowed means that two backends have equal hashes and with that all of their points in common; the
	// one that loses the tie owns nothing. Another address, port or name of one of them mends it.
	WarningBackendShadowed WarningReason = "BackendShadowed"

	// WarningTieOrderBias means that there are so many points that the fixed order of ties favours the first backends
	// beyond what chance explains. Fewer points per weight mend it.
	WarningTieOrderBias WarningReason = "TieOrderBias"

	// WarningImbalanceOverLimit means that trimming could not bring a view within spec.algorithm.maxImbalance. The message
	// names the view, the figure that was reached and the limit. More points per weight, or more backends in the view, mend
	// it.
	WarningImbalanceOverLimit WarningReason = "ImbalanceOverLimit"

	// WarningFieldWithoutEffect means that spec sets fields which the algorithm version has no use for. The message names
	// them. Another version, or removing them, mends it.
	WarningFieldWithoutEffect WarningReason = "FieldWithoutEffect"

	// WarningLargeRecipe means that the ring is published as a recipe of more points than readers build by default. They keep
	// the ring that they have unless they are told to build more. Fewer points, or encoding Points, mend it as well.
	WarningLargeRecipe WarningReason = "LargeRecipe"
)
