// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionType is the type of a condition in a status.
type ConditionType string

// ConditionReason is the machine-readable cause in a condition.
type ConditionReason string

const (
	// ConditionReady says whether the published ring is what spec asks for, or safely on its way there.
	//
	// Reasons for True: ReasonRingPublished, ReasonCoalescing, ReasonCandidateWaiting, ReasonPinned.
	// Reasons for False: ReasonNoBackends, ReasonInvalidSpec, ReasonDuplicateIdentity, ReasonSnapshotTooLarge,
	// ReasonNameConflict, ReasonPublishFailed, ReasonRevisionNotFound, ReasonSourcesUnread, ReasonMigrationInProgress, and those of
	// ConditionHeld but ReasonPinned and ReasonMovementBudget.
	ConditionReady ConditionType = "Ready"

	// ConditionBackendsResolved says whether every source of backends was read, and every one of its endpoints understood.
	// While it is False because a source was not read, no backend is removed.
	//
	// Reasons for True: ReasonResolved.
	// Reasons for False: ReasonServiceNotFound, ReasonPortNotFound, ReasonInvalidWeight, ReasonMissingIdentity,
	// ReasonPodNotFound, ReasonDuplicateIdentity.
	ConditionBackendsResolved ConditionType = "BackendsResolved"

	// ConditionPublished says whether the snapshot of the revision that is to be published is in the cluster, byte for
	// byte. While it is False, readers keep the ring in status.active.
	//
	// Reasons for True: ReasonRingPublished.
	// Reasons for False: ReasonCoalescing, ReasonNoBackends, ReasonInvalidSpec, ReasonDuplicateIdentity,
	// ReasonSnapshotTooLarge, ReasonNameConflict, ReasonPublishFailed, ReasonRevisionNotFound, ReasonSourcesUnread,
	// ReasonBelowMinimum, ReasonMigrationInProgress.
	ConditionPublished ConditionType = "Published"

	// ConditionHeld says whether something keeps the ring from following spec or its sources. What is published is the last
	// good ring, or with ReasonPinned the pinned one. It goes True as soon as the cause is there; ConditionReady follows when
	// the delays of membership are over and the ring would change.
	//
	// Reasons for True: ReasonBelowMinimum, ReasonSuddenLoss, ReasonPinned, ReasonMovementBudget.
	// Reasons for False: ReasonNotHeld.
	ConditionHeld ConditionType = "Held"

	// ConditionMigrationRequired says whether status.candidate waits, or a change behind it.
	//
	// Reasons for True: ReasonAlgorithmChanged, ReasonMovementBudget, ReasonMigrationInProgress.
	// Reasons for False: ReasonNoCandidate.
	ConditionMigrationRequired ConditionType = "MigrationRequired"

	// ConditionApplied says whether every pod that spec.consumers selects has the published routing generation with its digests.
	// It says nothing of the ring: none of the other conditions depends on it, for readers may take their time.
	//
	// Reasons for True: ReasonAllConsumersCurrent.
	// Reasons for False: ReasonWaitingForConsumers, ReasonDigestMismatch, ReasonInvalidSelector.
	// Reasons for Unknown: ReasonNoConsumersDeclared, ReasonNoConsumersFound, ReasonPublishFailed.
	ConditionApplied ConditionType = "Applied"

	// ConditionRefreshed says whether every pod that has to be touched for what is published has been. It is present with
	// spec.consumers.refresh TouchPods only. None of the other conditions depends on it: without it kubelets bring what is published
	// later.
	//
	// Reasons for True: ReasonAllPodsTouched.
	// Reasons for False: ReasonTouchingPods, ReasonPodsRefused, ReasonTouchForbidden, ReasonInvalidSelector.
	// Reasons for Unknown: ReasonNoPodsFound, ReasonPublishFailed.
	ConditionRefreshed ConditionType = "Refreshed"

	// ConditionReconciling is kstatus's sign of work in progress. It is present, and True, only while the operator is
	// on its way to what spec asks for and expects to get there without help.
	//
	// Reasons for True: ReasonCoalescing, ReasonPublishFailed, ReasonSourcesUnread, and ReasonNoBackends and ReasonBelowMinimum
	// of a first ring whose backends come from Services.
	ConditionReconciling ConditionType = "Reconciling"

	// ConditionStalled is kstatus's sign of work that cannot go on. It is present, and True, only while somebody has to
	// change spec or the cluster before the operator can go on.
	//
	// Reasons for True: ReasonNoBackends, ReasonInvalidSpec, ReasonDuplicateIdentity, ReasonSnapshotTooLarge,
	// ReasonNameConflict, ReasonRevisionNotFound, ReasonBelowMinimum, ReasonSuddenLoss, ReasonMigrationInProgress.
	ConditionStalled ConditionType = "Stalled"
)

const (
	// ReasonRingPublished means that the ring that spec asks for is published, and that what is in the cluster equals
	// it.
	ReasonRingPublished ConditionReason = "RingPublished"

	// ReasonCoalescing means that a newer ring waits for spec.publication.minInterval to pass since the last
	// publication. The newest state is always published in the end.
	ReasonCoalescing ConditionReason = "Coalescing"

	// ReasonCandidateWaiting means that the ring that spec asks for is the candidate, and that the published ring is kept up to date
	// until it is taken.
	ReasonCandidateWaiting ConditionReason = "CandidateWaiting"

	// ReasonNoBackends means that there is no backend with a weight above 0, so that the ring would own no key. The
	// last good ring stays published.
	ReasonNoBackends ConditionReason = "NoBackends"

	// ReasonInvalidSpec means that spec breaks a rule that the schema could not check, or was admitted under an older
	// schema. The message names the field. The last good ring stays published.
	ReasonInvalidSpec ConditionReason = "InvalidSpec"

	// ReasonDuplicateIdentity means that two backends have the same identity, so that all of their points would be the
	// same, or the same name. The message names both. The last good ring stays published; where one of them comes from a
	// source, the first one counts.
	ReasonDuplicateIdentity ConditionReason = "DuplicateIdentity"

	// ReasonSnapshotTooLarge means that the snapshot does not fit into spec.publication.chunks ConfigMaps, that the ring
	// has more points than the operator builds, or that its record or the routing file is too large. The message gives size,
	// points and what would fit. The last good ring stays published.
	ReasonSnapshotTooLarge ConditionReason = "SnapshotTooLarge"

	// ReasonPublishFailed means that the API server refused or did not answer a write. The operator tries again.
	ReasonPublishFailed ConditionReason = "PublishFailed"

	// ReasonNameConflict means that an object of the name that the operator would publish exists and is not the
	// operator's. It is left alone; the message names it.
	ReasonNameConflict ConditionReason = "NameConflict"

	// ReasonRevisionNotFound means that spec.pinnedRevision is not kept any more, or never was. The last good ring stays
	// published; the message names those that are kept. It also means that one of the rings of a RingMigration is not kept any more.
	ReasonRevisionNotFound ConditionReason = "RevisionNotFound"

	// ReasonResolved means that every source was read.
	ReasonResolved ConditionReason = "Resolved"

	// ReasonSourcesUnread means that the first ring waits for a source that cannot be read; ConditionBackendsResolved says
	// why.
	ReasonSourcesUnread ConditionReason = "SourcesUnread"

	// ReasonServiceNotFound means that a Service of spec.backendsFrom does not exist, or is of type ExternalName.
	ReasonServiceNotFound ConditionReason = "ServiceNotFound"

	// ReasonPortNotFound means that a Service has no port of the name or number that spec.backendsFrom asks for, or several
	// where it asks for none; or that none of its EndpointSlices has that port.
	ReasonPortNotFound ConditionReason = "PortNotFound"

	// ReasonInvalidWeight means that the weight annotation of a pod or an EndpointSlice is no number from 0 to 1000000. The
	// backend keeps the weight that it has on the published ring, or without one that of its source. The message names it.
	ReasonInvalidWeight ConditionReason = "InvalidWeight"

	// ReasonMissingIdentity means that an endpoint has no hostname, or no pod, from which its source takes the names of
	// backends. It is left out; the message names its address.
	ReasonMissingIdentity ConditionReason = "MissingIdentity"

	// ReasonPodNotFound means that a pod is ready by an EndpointSlice and the operator does not know its labels and
	// annotations, which its source asks for. It waits, or keeps what the published ring says of it; the message names it. It
	// ends by itself in a moment, unless the pod is gone or the operator may not read pods.
	ReasonPodNotFound ConditionReason = "PodNotFound"

	// ReasonBelowMinimum means that fewer backends would be placed than spec.membership.minBackends.
	ReasonBelowMinimum ConditionReason = "BelowMinimum"

	// ReasonSuddenLoss means that more of the backends are gone, not ready or taken out of spec at one time than
	// spec.membership.maxRemoved, and others have not taken their place. Their return, or kubectl hashring release, ends it.
	ReasonSuddenLoss ConditionReason = "SuddenLoss"

	// ReasonPinned means that spec.pinnedRevision says which ring is published.
	ReasonPinned ConditionReason = "Pinned"

	// ReasonMovementBudget means that the change would move more of the key space than spec.membership.maxMovement. It is
	// the candidate.
	ReasonMovementBudget ConditionReason = "MovementBudget"

	// ReasonNotHeld means that nothing keeps the ring.
	ReasonNotHeld ConditionReason = "NotHeld"

	// ReasonAlgorithmChanged means that spec asks for another algorithm than that of the published ring. The ring with it is
	// the candidate.
	ReasonAlgorithmChanged ConditionReason = "AlgorithmChanged"

	// ReasonMigrationInProgress means that spec asks for more than the candidate that a RingMigration goes to: it waits until that is
	// over, and the message says what it is. Backends that leave or are drained do not wait: readers pass over them in both rings.
	// In ConditionReady it means that spec.pinnedRevision has to wait.
	ReasonMigrationInProgress ConditionReason = "MigrationInProgress"

	// ReasonNoCandidate means that nothing waits.
	ReasonNoCandidate ConditionReason = "NoCandidate"

	// ReasonAllConsumersCurrent means that there are consumers, and that each of them has what is published.
	ReasonAllConsumersCurrent ConditionReason = "AllConsumersCurrent"

	// ReasonWaitingForConsumers means that some consumers do not have what is published yet, or did not say so; the message names
	// the first, and status.consumers more of them.
	ReasonWaitingForConsumers ConditionReason = "WaitingForConsumers"

	// ReasonDigestMismatch means that a consumer has the published routing generation with another snapshot than the published
	// one, which is never right; the message names it.
	ReasonDigestMismatch ConditionReason = "DigestMismatch"

	// ReasonInvalidSelector means that spec.consumers.selector is none. Nobody is asked.
	ReasonInvalidSelector ConditionReason = "InvalidSelector"

	// ReasonNoConsumersDeclared means that spec has no consumers, so that nobody is asked.
	ReasonNoConsumersDeclared ConditionReason = "NoConsumersDeclared"

	// ReasonNoConsumersFound means that spec.consumers selects no pod. That is neither success nor failure.
	ReasonNoConsumersFound ConditionReason = "NoConsumersFound"

	// ReasonAllPodsTouched means that every running pod that mounts the ring was touched for what is published, or started with it.
	ReasonAllPodsTouched ConditionReason = "AllPodsTouched"

	// ReasonTouchingPods means that some pods are still to be touched, at most as many a second as the operator may.
	ReasonTouchingPods ConditionReason = "TouchingPods"

	// ReasonPodsRefused means that some pods could not be touched, because the API server or an admission policy refused the change. The
	// message names the first. The kubelets bring them what is published later.
	ReasonPodsRefused ConditionReason = "PodsRefused"

	// ReasonTouchForbidden means that the operator may not patch pods in the namespace, as it may not unless config/components/touch-pods is
	// applied. No pod is touched.
	ReasonTouchForbidden ConditionReason = "TouchForbidden"

	// ReasonNoPodsFound means that no running pod that spec.consumers selects mounts a ConfigMap of the ring.
	ReasonNoPodsFound ConditionReason = "NoPodsFound"
)

// WarningReason is the machine-readable cause in a warning about a ring that is published all the same.
//
// +kubebuilder:validation:Enum=BackendOnFixedPoint;BackendShadowed;TieOrderBias;ImbalanceOverLimit;FieldWithoutEffect;LargeRecipe;CoarseWeights
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

	// WarningCoarseWeights means that weights are so small whole numbers that they miss what a WeightPolicy asks for by more than 5 %.
	// The message says how large they would have to be.
	WarningCoarseWeights WarningReason = "CoarseWeights"
)
