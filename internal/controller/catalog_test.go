// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/catalog"
)

// TestCopiesBehindCache: a copy that was taken counts until the cache has it, so that it is not taken twice.
func TestCopiesBehindCache(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	seen := []catalog.Copy{{Name: catalog.CopyName(now.Add(-time.Hour)), Digest: "a"}}
	taken := catalog.Copy{Name: catalog.CopyName(now), Digest: "b"}
	both := []catalog.Copy{seen[0], taken}
	r := &CatalogReconciler{}
	if got := r.copies(seen, now); !slices.Equal(got, seen) {
		t.Errorf("where none was taken: %v", got)
	}
	r.taken = taken
	got := r.copies(seen, now.Add(time.Second))
	if !slices.Equal(got, both) {
		t.Errorf("while the cache is behind: %v", got)
	}
	content := catalog.Catalog{Rings: []catalog.Ring{{Name: "edge"}}}
	if plan := catalog.PlanCopies(content, "b", got, catalog.Policy{Keep: 3}, now.Add(2*time.Second)); plan.Take != "" {
		t.Errorf("it takes %s of the same", plan.Take)
	}
	if got := r.copies(both, now.Add(time.Second)); !slices.Equal(got, both) {
		t.Errorf("once the cache has it: %v", got)
	}
	if got := r.copies(seen, now.Add(time.Second)); !slices.Equal(got, seen) {
		t.Errorf("once somebody has deleted it: %v", got)
	}
	r.taken = taken
	if got := r.copies(seen, now.Add(copyLag)); !slices.Equal(got, seen) {
		t.Errorf("where the cache never had it: %v", got)
	}
}
