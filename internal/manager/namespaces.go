// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/ringwright/ringwright/internal/publish"
)

// Watched returns what a cache is told of the namespaces that are watched; nil, which is all of them, without any.
func Watched(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	watched := make(map[string]cache.Config, len(namespaces))
	for _, namespace := range namespaces {
		watched[namespace] = cache.Config{}
	}
	return watched
}

// configMapNamespaces adds that of the catalog, of which nothing else is seen: what is left there of rings is nobody's who is watched.
func configMapNamespaces(o Options) map[string]cache.Config {
	watched := maps.Clone(Watched(o.Namespaces))
	if _, ok := watched[o.CatalogNamespace]; watched != nil && !ok && o.CatalogNamespace != "" {
		watched[o.CatalogNamespace] = cache.Config{LabelSelector: publish.CatalogSelector()}
	}
	return watched
}
