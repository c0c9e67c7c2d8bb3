// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// TestNamespacesOfConfigMaps: that of the catalog is there too, with nothing but the catalog unless it is watched anyway.
func TestNamespacesOfConfigMaps(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    []string
		only    bool
	}{
		"all":                     {Options{CatalogNamespace: "system"}, nil, false},
		"some":                    {Options{CatalogNamespace: "system", Namespaces: []string{"b", "a"}}, []string{"a", "b", "system"}, true},
		"that of the catalog too": {Options{CatalogNamespace: "system", Namespaces: []string{"system"}}, []string{"system"}, false},
		"no catalog":              {Options{Namespaces: []string{"a"}}, []string{"a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := configMapNamespaces(test.options)
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Error(diff)
			}
			selector := got["system"].LabelSelector
			if (selector != nil) != test.only {
				t.Fatalf("selects %v", selector)
			}
			ours := labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright}
			if test.only && (selector.Matches(ours) || !selector.Matches(labels.Merge(ours, labels.Set{v1alpha1.LabelCatalog: "x"}))) {
				t.Errorf("selects %v", selector)
			}
		})
	}
	if got := cacheOptions(Options{}).DefaultNamespaces; got != nil {
		t.Errorf("without namespaces: %v", got)
	}
}
