// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/agentapi"
)

// behind is a part that says why it is behind.
type behind struct {
	part
	reason string
}

func (b behind) NotApplied() string { return b.reason }

// TestNotApplied: what parts say is joined, and cut to what a status has room for between two letters.
func TestNotApplied(t *testing.T) {
	long := strings.Repeat("x", agentapi.MaxNotAppliedBytes-1)
	for name, row := range map[string]struct {
		reasons []string
		want    string
	}{
		"no part":      {nil, ""},
		"all is well":  {[]string{"", ""}, ""},
		"one":          {[]string{"", "a"}, "a"},
		"two":          {[]string{"a", "b"}, "a; b"},
		"as long as":   {[]string{long + "y"}, long + "y"},
		"too long":     {[]string{long + "yz"}, long + "y"},
		"half a ä":     {[]string{long + "äz"}, long},
		"invalid UTF8": {[]string{"a\xffb"}, "a?b"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &handler{}
			for _, reason := range row.reasons {
				h.parts = append(h.parts, behind{reason: reason})
			}
			if got := h.notApplied(); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
