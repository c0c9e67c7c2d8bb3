// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// chunksOf returns how many ConfigMaps take so many bytes.
func chunksOf(bytes uint64) int { return int((bytes + plan.ChunkBytes - 1) / plan.ChunkBytes) }

// publish decides how the ring is published.
func (s *SizedRing) publish() {
	s.Encoding, s.Chunks = ring.EncodingPoints.String(), chunksOf(s.Bytes)
	if s.Chunks > v1alpha1.MaxChunks {
		s.Encoding, s.Chunks = ring.EncodingRecipe.String(), chunksOf(s.RecipeBytes)
	}
}

func (s SizedRing) isRecipe() bool { return s.Encoding == ring.EncodingRecipe.String() }

// publishedText says it in a word or two.
func (s SizedRing) publishedText() string {
	switch {
	case s.Refused:
		return "refused"
	case s.isRecipe() && s.Chunks > 1:
		return fmt.Sprintf("recipe, %s in %d chunks", byteCount(s.RecipeBytes), s.Chunks)
	case s.isRecipe():
		return "recipe, " + byteCount(s.RecipeBytes)
	case s.Chunks > 1:
		return fmt.Sprintf("%d chunks", s.Chunks)
	default:
		return "1 ConfigMap"
	}
}

// bytesText says how many bytes there are, and what becomes of them.
func (s SizedRing) bytesText() string {
	if s.isRecipe() {
		return fmt.Sprintf("%d bytes, too many for %d chunks: %s", s.Bytes, v1alpha1.MaxChunks, s.publishedText())
	}
	return fmt.Sprintf("%d bytes in %s", s.Bytes, s.publishedText())
}
