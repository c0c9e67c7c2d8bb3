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
		ring Ring
		warn bool
	}{
		"at the limit of readers": {Ring{encoding: v1alpha1.EncodingRecipe, points: ring.DefaultMaxPoints}, false},
		"over it":                 {Ring{encoding: v1alpha1.EncodingRecipe, points: ring.DefaultMaxPoints + 1}, true},
		"points":                  {Ring{encoding: v1alpha1.EncodingPoints, points: ring.DefaultMaxPoints + 1}, false},
	} {
		list := row.ring.largeRecipe()
		if warns := len(list) == 1 && strings.Contains(list[0].Message, "by default refuse more than 67108864: --max-points"); warns != row.warn {
			t.Errorf("%s: %+v", name, list)
		}
	}
}
