// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// FieldManager is the field manager under which the operator applies everything that it publishes, and the status
// of its own resources. No other program may use it: a second owner of the same name removes the first one's fields.
const FieldManager = "ringwright"

// FieldManagerMigration is that of the migration controller, which owns status.migration of HashRings and the status of RingMigrations.
const FieldManagerMigration = "ringwright-migration"

// FieldManagerBalancer is that of the balancer, which writes WeightSets, the ConfigMaps of weights, and the status of WeightPolicies.
const FieldManagerBalancer = "ringwright-balancer"

// FinalizerMigration keeps a RingMigration until it has rolled back, or let go of its HashRings.
const FinalizerMigration = "ringwright.dev/migration"

// Labels on every object that the operator publishes. Nothing else of the parent's labels is copied: a tracking label
// that a child inherits makes a GitOps tool prune the child.
const (
	// LabelManagedBy says which program maintains an object. The operator caches and watches only what carries it.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// ManagedByRingwright is the value of LabelManagedBy on everything that the operator publishes.
	ManagedByRingwright = "ringwright"

	// LabelRing is the name of the HashRing that an object was published for. A HashRing's name has at most 63
	// characters, because it has to fit here.
	LabelRing = "ringwright.dev/ring"

	// LabelWeightPolicy is the name of the WeightPolicy that a WeightSet, a ConfigMap of weights or a ControllerRevision of weights was written for.
	LabelWeightPolicy = "ringwright.dev/weight-policy"

	// LabelWeightRing is the name of the HashRing whose backends a WeightSet has the weights of.
	LabelWeightRing = "ringwright.dev/weight-ring"

	// LabelCatalog is on the catalog of all rings, CatalogCurrent, and on the copies that were taken of it, CatalogCopy.
	LabelCatalog = "ringwright.dev/catalog"

	// CatalogCurrent is the value of LabelCatalog on the catalog that is kept up to date.
	CatalogCurrent = "current"

	// CatalogCopy is the value of LabelCatalog on an immutable copy.
	CatalogCopy = "copy"
)

// Annotations on published ConfigMaps.
const (
	// AnnotationDigest is the digest of the snapshot in a slot, as "sha256:" and 64 hexadecimal digits: that of the whole,
	// on each of its chunks. Neither an empty slot nor a chunk that is not needed has it.
	AnnotationDigest = "ringwright.dev/digest"

	// AnnotationRevision is the number of the revision whose snapshot is in a slot, in decimal.
	AnnotationRevision = "ringwright.dev/revision"

	// AnnotationEncoding is the encoding of the snapshot in a slot, EncodingPoints or EncodingRecipe.
	AnnotationEncoding = "ringwright.dev/encoding"

	// AnnotationContentDigest is the SHA-256 of all of a ConfigMap's data and binaryData, as "sha256:" and 64
	// hexadecimal digits. The operator caches ConfigMaps without their payload and sees an edit by this annotation
	// and the object's managed fields.
	AnnotationContentDigest = "ringwright.dev/content-digest"

	// AnnotationGeneration is the generation of the routing file in a routing ConfigMap, in decimal. Readers never go
	// back to a lower one.
	AnnotationGeneration = "ringwright.dev/generation"

	// AnnotationRingUID is the UID of the HashRing that an object was published for. It stands in for an owner reference,
	// which would have the garbage collector delete what is published together with the HashRing.
	AnnotationRingUID = "ringwright.dev/ring-uid"

	// AnnotationTombstone is spec.deletion.tombstone on the routing ConfigMap, as a duration: how long what is published
	// outlives the HashRing.
	AnnotationTombstone = "ringwright.dev/tombstone"

	// AnnotationTombstoneUntil is on the routing ConfigMap of a HashRing that is gone: when what was published for it is
	// deleted, in the form of RFC 3339.
	AnnotationTombstoneUntil = "ringwright.dev/tombstone-until"
)

// AnnotationSnapshotPrefix and the name of a HashRing, shortened where the two together are too long for an annotation, are the annotation that
// the operator changes on pods with spec.consumers.refresh TouchPods. Its value names what is published: the routing generation in
// decimal, a dash, and the first 12 hexadecimal digits of the SHA-256 of routing.json.
const AnnotationSnapshotPrefix = "ringwright.dev/snapshot-"

// AnnotationRelease is set on a HashRing, by kubectl hashring release, to the token of status.hold: what the hold names may
// be removed. It confirms that and nothing that is lost later.
const AnnotationRelease = "ringwright.dev/release"

// AnnotationAllowActiveDeletion on a RingMigration, with the value "true", lets it be deleted while it runs, which the admission policy of
// config/policy refuses otherwise.
const AnnotationAllowActiveDeletion = "ringwright.dev/allow-active-deletion"

// AnnotationPinnedWeights is set on a WeightPolicy, by kubectl hashring weights rollback, to the number of a recorded revision of its weights, which
// are served until the annotation is removed.
const AnnotationPinnedWeights = "ringwright.dev/pinned-weights"
