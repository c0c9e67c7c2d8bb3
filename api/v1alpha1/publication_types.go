// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MaxChunks is the largest spec.publication.chunks.
const MaxChunks = 16

// Encoding says how a snapshot is to be written.
//
// +kubebuilder:validation:Enum=Auto;Points;Recipe
type Encoding string

const (
	// EncodingAuto writes the points while they fit into the chunks, and the recipe otherwise.
	EncodingAuto Encoding = "Auto"

	// EncodingPoints writes every point of the ring, ready to be searched without being decoded.
	EncodingPoints Encoding = "Points"

	// EncodingRecipe writes everything but the points, and a fingerprint of the ring. Readers build the ring again and
	// compare the fingerprint before they use it.
	EncodingRecipe Encoding = "Recipe"
)
