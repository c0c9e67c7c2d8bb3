// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// SnapshotSize is the size of a snapshot.
type SnapshotSize struct {
	// points is the number of points on the ring.
	// +required
	Points int64 `json:"points"`

	// bytes is the size of the snapshot, all chunks together. A ConfigMap takes at most 1048576.
	// +required
	Bytes int64 `json:"bytes"`

	// bytesPerPoint is bytes divided by points, with two decimals, such as "3.43".
	// +required
	// +kubebuilder:validation:MaxLength=32
	BytesPerPoint string `json:"bytesPerPoint"`

	// encoding is how the snapshot is written: Points or Recipe.
	// +optional
	Encoding Encoding `json:"encoding,omitempty"`

	// chunks is the number of ConfigMaps that the snapshot takes, at most spec.publication.chunks.
	// +optional
	Chunks int32 `json:"chunks,omitempty"`

	// budgetUsed is how much of what spec.publication.chunks ConfigMaps take the snapshot needs, in percent and rounded up,
	// such as "57%".
	// +optional
	// +kubebuilder:validation:MaxLength=8
	BudgetUsed string `json:"budgetUsed,omitempty"`
}

// Balance says how evenly a ring spreads the key space over its backends. Shares are exact: arc lengths, not samples.
type Balance struct {
	// maxOverAverage is the largest share of a backend relative to the share that its weight asks for, with three
	// decimals, such as "1.360". 1.000 is perfect.
	// +required
	// +kubebuilder:validation:MaxLength=32
	MaxOverAverage string `json:"maxOverAverage"`

	// coefficientOfVariation is the standard deviation of the backends' shares relative to what their weights ask for, in
	// percent with two decimals, such as "7.90%".
	// +required
	// +kubebuilder:validation:MaxLength=32
	CoefficientOfVariation string `json:"coefficientOfVariation"`

	// predicted is the coefficient of variation that a ring of this size and weights has on average before anything is
	// trimmed, in the same form. A figure far above it hints at an oddity that a warning explains; V3 is far below it.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Predicted string `json:"predicted"`

	// worstView is the one of the views that a V3 ring is trimmed for whose busiest backend is the furthest above its share;
	// absent with V1 and V2.
	// +optional
	WorstView *ViewBalance `json:"worstView,omitempty"`
}

// ViewBalance says how evenly a view spreads the key space over its backends.
type ViewBalance struct {
	// features are the features of the view, sorted; absent for the view of all backends.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=12
	// +kubebuilder:validation:items:MaxLength=63
	Features []string `json:"features,omitempty"`

	// maxOverAverage is the largest share of a backend of the view relative to the share that its weight asks for there, with
	// three decimals, such as "1.010". 1.000 is perfect.
	// +required
	// +kubebuilder:validation:MaxLength=32
	MaxOverAverage string `json:"maxOverAverage"`
}
