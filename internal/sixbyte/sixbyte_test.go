// SPDX-License-Identifier: Apache-2.0

package sixbyte_test

import (
	"fmt"
	"testing"

	"github.com/ringwright/ringwright/internal/sixbyte"
	"github.com/ringwright/ringwright/pkg/ring"
)

// TestSameRing: what the packed ring is measured against gives the same owners.
func TestSameRing(t *testing.T) {
	c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 40}, Identity: ring.IdentityAddress}
	for i := range 300 {
		c.Backends = append(c.Backends, ring.Backend{ID: fmt.Sprintf("10.0.%d.%d:8080", i>>8, i&255), Weight: 1 + uint32(i)%3})
	}
	r, err := ring.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	six, x := sixbyte.New(c), uint32(1)
	for range 10_000 {
		owner, err := r.Owner(x)
		if err != nil || owner != six.Owner(x) {
			t.Fatalf("owner of %08x: %d, %v, and %d", x, owner, err, six.Owner(x))
		}
		x = sixbyte.Next(x, owner)
	}
}
