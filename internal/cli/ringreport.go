// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// RingReport describes a snapshot. Ratios are numbers of six decimals, not percentages.
type RingReport struct {
	// Digest names the snapshot: "sha256:" and 64 hex digits.
	Digest string `json:"digest"`
	// Encoding is Points, or Recipe for a snapshot whose points every reader builds.
	Encoding string `json:"encoding"`
	// Algorithm placed the points.
	Algorithm AlgorithmReport `json:"algorithm"`
	// Identity is what of a backend is hashed: Address, NGINX or Name.
	Identity string `json:"identity"`
	// Backends counts the table: Placed have points, Drained have weight 0.
	Backends BackendCounts `json:"backends"`
	// Features are the features that can be asked for, sorted.
	Features []string `json:"features,omitempty"`
	// Points is the number of points, Bytes the length of the file, BytesPerPoint their ratio (two decimals).
	Points        int     `json:"points"`
	Bytes         int     `json:"bytes"`
	BytesPerPoint float64 `json:"bytesPerPoint"`
	// Sections are the parts of the file in order; their bytes add up to Bytes.
	Sections []SectionReport `json:"sections"`
	// Balance is that of the whole ring.
	Balance BalanceReport `json:"balance"`
	// Views are what a V3 ring is trimmed for, the worst balanced first.
	Views []DeclaredViewReport `json:"views,omitempty"`
	// Warnings are what is odd about the ring.
	Warnings []WarningReport `json:"warnings,omitempty"`
}

// AlgorithmReport is an algorithm and its parameters.
type AlgorithmReport struct {
	Version         string `json:"version"`
	PointsPerWeight int    `json:"pointsPerWeight"`
	// WeightUnit is the weight that has that many points, MaxImbalance how far above its target a share may be: 0.01 is 1 %.
	// Only V3 has them.
	WeightUnit   int     `json:"weightUnit,omitempty"`
	MaxImbalance float64 `json:"maxImbalance,omitempty"`
}

// DeclaredViewReport is a view that a V3 ring is trimmed for.
type DeclaredViewReport struct {
	// Features are those of the view, none for that of all backends.
	Features       []string `json:"features"`
	Backends       int      `json:"backends"`
	MaxOverAverage float64  `json:"maxOverAverage"`
}

// BackendCounts counts backends: total is placed + drained.
type BackendCounts struct {
	Total   int `json:"total"`
	Placed  int `json:"placed"`
	Drained int `json:"drained"`
}

// SectionReport is a part of a snapshot.
type SectionReport struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// BalanceReport says how evenly the key space is spread, and what theory expects of points at random places. A ratio is
// that of a backend's share to its target, which is its weight over the sum of the weights.
type BalanceReport struct {
	// MaxOverAverage and MinOverAverage are the largest and the smallest ratio.
	MaxOverAverage float64 `json:"maxOverAverage"`
	MinOverAverage float64 `json:"minOverAverage"`
	// CoefficientOfVariation is that of the ratios.
	CoefficientOfVariation          float64 `json:"coefficientOfVariation"`
	PredictedCoefficientOfVariation float64 `json:"predictedCoefficientOfVariation"`
	// Collisions is how many points lose a tie.
	Collisions          int     `json:"collisions"`
	PredictedCollisions float64 `json:"predictedCollisions"`
}

// WarningReport is an oddity that does not keep a ring from being used.
type WarningReport struct {
	// Reason is that of the HashRing's status.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func describeRing(r *ring.Ring) RingReport {
	stats, views := r.Stats(), plan.ViewBalances(r)
	report := RingReport{
		Digest:    r.Digest(),
		Encoding:  r.Encoding().String(),
		Algorithm: describeAlgorithm(r.Algorithm()),
		Identity:  r.Identity().String(),
		Backends:  BackendCounts{Total: r.Len(), Placed: stats.Backends, Drained: r.Len() - stats.Backends},
		Features:  r.Features(),
		Points:    r.PointCount(), Bytes: len(r.Snapshot()),
		Balance:  describeBalance(stats),
		Warnings: describeWarnings(plan.Warnings(r, views)),
	}
	for _, v := range views {
		report.Views = append(report.Views, DeclaredViewReport{
			Features: append([]string{}, v.Features...), Backends: v.Backends, MaxOverAverage: round(v.MaxOverAverage, 6),
		})
	}
	if report.Points > 0 {
		report.BytesPerPoint = round(float64(report.Bytes)/float64(report.Points), 2)
	}
	for _, s := range r.Sections() {
		report.Sections = append(report.Sections, SectionReport(s))
	}
	return report
}

func describeBalance(s ring.Stats) BalanceReport {
	return BalanceReport{
		MaxOverAverage: round(s.MaxOverAverage, 6), MinOverAverage: round(s.MinOverAverage, 6),
		CoefficientOfVariation: round(s.CV, 6), PredictedCoefficientOfVariation: round(s.PredictedCV, 6),
		Collisions: s.Collisions, PredictedCollisions: round(s.PredictedCollisions, 6),
	}
}

func describeAlgorithm(a ring.Algorithm) AlgorithmReport {
	return AlgorithmReport{
		Version: a.Version.String(), PointsPerWeight: int(a.PointsPerWeight),
		WeightUnit: int(a.WeightUnit), MaxImbalance: round(float64(a.MaxImbalance)/1_000_000, 6),
	}
}

func describeWarnings(warnings []v1alpha1.Warning) []WarningReport {
	var list []WarningReport
	for _, w := range warnings {
		list = append(list, WarningReport{Reason: string(w.Reason), Message: w.Message})
	}
	return list
}

// header prints what a ring is, as lines of a name and a value.
func (r RingReport) header(w io.Writer) {
	printf(w, "digest\t%s\n", r.Digest)
	printf(w, "encoding\t%s\n", r.Encoding)
	printf(w, "algorithm\t%s, %s\n", r.Algorithm.Version, pointsText(r.Algorithm))
	printf(w, "identity\t%s\n", r.Identity)
	drained := ""
	if r.Backends.Drained > 0 {
		drained = fmt.Sprintf(" (%d placed, %d drained)", r.Backends.Placed, r.Backends.Drained)
	}
	printf(w, "backends\t%d%s\n", r.Backends.Total, drained)
	printf(w, "features\t%s\n", dash(strings.Join(r.Features, ", ")))
	if len(r.Views) > 0 {
		printf(w, "views\t%d trimmed, the worst is %s with max/avg %.3f\n", len(r.Views), viewName(r.Views[0].Features), r.Views[0].MaxOverAverage)
	}
	printf(w, "points\t%d\n", r.Points)
	parts := make([]string, len(r.Sections))
	for i, s := range r.Sections {
		parts[i] = fmt.Sprintf("%s %d", s.Name, s.Bytes)
	}
	printf(w, "bytes\t%d, %.2f a point (%s)\n", r.Bytes, r.BytesPerPoint, strings.Join(parts, ", "))
}

// pointsText says how many points there are, and what they are trimmed to.
func pointsText(a AlgorithmReport) string {
	if a.WeightUnit == 0 {
		return plural(a.PointsPerWeight, "point", "points") + " for each unit of weight"
	}
	return fmt.Sprintf("%s for a weight of %d, trimmed to %s above the share",
		plural(a.PointsPerWeight, "point", "points"), a.WeightUnit, plan.FormatImbalance(uint32(math.Round(a.MaxImbalance*1_000_000))))
}

// table prints the balance beside what theory expects.
func (b BalanceReport) table(w io.Writer, title string) {
	printf(w, "%s\tMEASURED\tPREDICTED\n", title)
	printf(w, "max/avg\t%.3f\t-\n", b.MaxOverAverage)
	printf(w, "min/avg\t%.3f\t-\n", b.MinOverAverage)
	printf(w, "CV\t%s\t%s\n", percent(b.CoefficientOfVariation, 2), percent(b.PredictedCoefficientOfVariation, 2))
	printf(w, "collisions\t%d\t%.1f\n", b.Collisions, b.PredictedCollisions)
}

// printWarnings prints a line for each.
func printWarnings(out io.Writer, warnings []WarningReport) {
	for _, w := range warnings {
		printf(out, "warning: %s: %s\n", w.Reason, w.Message)
	}
}
