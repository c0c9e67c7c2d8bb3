// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// TestLargeRecipesWarn: readers refuse by default what the operator publishes.
func TestLargeRecipesWarn(t *testing.T) {
	for name, row := range map[string]struct {
		encoding v1alpha1.Encoding
		points   int
		warn     bool
	}{
		"at the limit of readers": {v1alpha1.EncodingRecipe, ring.DefaultMaxPoints, false},
		"over it":                 {v1alpha1.EncodingRecipe, ring.DefaultMaxPoints + 1, true},
		"points":                  {v1alpha1.EncodingPoints, ring.DefaultMaxPoints + 1, false},
	} {
		list := largeRecipe(row.encoding, row.points)
		if warns := len(list) == 1 && strings.Contains(list[0].Message, "by default refuse more than 67108864: --max-points"); warns != row.warn {
			t.Errorf("%s: %+v", name, list)
		}
	}
}
