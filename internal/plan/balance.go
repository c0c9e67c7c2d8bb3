// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// ViewBalance is how well a declared view of a V3 ring is balanced.
type ViewBalance struct {
	// Features are sorted; none for the view of all backends.
	Features []string
	// Backends is how many can own a key.
	Backends int
	// MaxOverAverage is the largest share of one of them over its target; 0 in a view without a backend.
	MaxOverAverage float64
}

// ViewBalances returns that of each declared view, the worst first, and of equal ones those of the fewest features. There
// is none but with V3. Linear in the number of points, for each view.
func ViewBalances(r *ring.Ring) []ViewBalance {
	var list []ViewBalance
	for _, features := range r.Views() {
		view, err := r.View(features...)
		if err != nil {
			continue // The ring declares the features of its views.
		}
		stats := view.Stats()
		list = append(list, ViewBalance{Features: features, Backends: stats.Backends, MaxOverAverage: stats.MaxOverAverage})
	}
	slices.SortStableFunc(list, func(a, b ViewBalance) int {
		return cmp.Or(cmp.Compare(b.MaxOverAverage, a.MaxOverAverage), cmp.Compare(len(a.Features), len(b.Features)))
	})
	return list
}

// overLimit warns of the views that trimming could not bring within the limit of the ring.
func overLimit(r *ring.Ring, views []ViewBalance) []v1alpha1.Warning {
	const rounding = 1e-9
	limit := r.Algorithm().MaxImbalance
	var list []v1alpha1.Warning
	for _, v := range views {
		if v.MaxOverAverage <= 1+float64(limit)/million+rounding {
			break // They are sorted.
		}
		name := "the view of all backends"
		if len(v.Features) > 0 {
			name = "view " + strings.Join(v.Features, ",")
		}
		list = append(list, v1alpha1.Warning{
			Reason: v1alpha1.WarningImbalanceOverLimit,
			Message: fmt.Sprintf("in %s the busiest of %d backends stays %s%% above its share: trimming cannot bring it within spec.algorithm.maxImbalance %s, and more points for each unit of weight may",
				name, v.Backends, decimal((v.MaxOverAverage-1)*100, 4), FormatImbalance(limit)),
		})
	}
	return list
}

// Warnings returns what is odd about a ring with these [ViewBalances], whatever its spec.
func Warnings(r *ring.Ring, views []ViewBalance) []v1alpha1.Warning {
	list := largeRecipe(v1alpha1.Encoding(r.Encoding().String()), r.PointCount())
	for _, w := range r.Warnings() {
		list = append(list, v1alpha1.Warning{Reason: v1alpha1.WarningReason(w.Kind.String()), Message: w.Message})
	}
	return append(list, overLimit(r, views)...)
}

// largeRecipe warns of a recipe that readers refuse unless they are told otherwise.
func largeRecipe(encoding v1alpha1.Encoding, points int) []v1alpha1.Warning {
	if encoding != v1alpha1.EncodingRecipe || points <= ring.DefaultMaxPoints {
		return nil
	}
	return []v1alpha1.Warning{{Reason: v1alpha1.WarningLargeRecipe, Message: fmt.Sprintf(
		"readers build %d points from the recipe, and by default refuse more than %d: --max-points of the agent, or Options.MaxPoints of pkg/ringclient, raises that",
		points, ring.DefaultMaxPoints)}}
}
