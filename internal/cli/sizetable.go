// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// print writes the ladder and the advice for people.
func (r *SizeReport) print(out io.Writer) {
	printf(out, "%s, wanted imbalance %s\n\n", r.Subject, imbalanceText(r.MaxImbalance))
	rows(out, r.ladder)
	if len(r.LeftOut) > 0 {
		var points []string
		for _, rung := range r.LeftOut {
			points = append(points, strconv.Itoa(rung.PointsPerWeight))
		}
		printf(out, "left out: %s. A ring has at most %s points, with %s it would have %s\n", strings.Join(points, ", "),
			groupDigits(ring.HardMaxPoints), points[0], groupDigits(float64(r.LeftOut[0].Points)))
	}
	if r.WeightUnit > 1 {
		printf(out, "POINTS are those of a weight of %d. V1 and V2 have no weight unit: their weights are divided by it, and rounded\n", r.WeightUnit)
	}
	if slices.ContainsFunc(r.Rungs, func(s SizeRung) bool { return s.Plain.Chunks > 1 && !s.Plain.isRecipe() }) {
		printf(out, "chunks are those that spec.publication.chunks has to allow; with fewer it is published as a recipe\n")
	}
	left := 0
	for _, rung := range r.Rungs {
		if rung.Plain.MaxOverAverage == nil && !rung.Plain.Refused {
			left++
		}
	}
	if left > 0 {
		them, is := "them", "are"
		if left == 1 {
			them, is = "it", "is"
		}
		printf(out, "%s of more than %d points %s only predicted: --measure-all builds %s too\n",
			plural(left, "ring", "rings"), r.MeasuredPoints, is, them)
	}
	if trimmed := r.refused(func(s SizeRung) SizedRing { return s.Trimmed }); trimmed > 0 {
		printf(out, "%s with more than the %s points that the operator trims: no V3\n",
			plural(trimmed, "rung", "rungs"), groupDigits(plan.MaxTrimmedPoints))
	}
	if plain := r.refused(func(s SizeRung) SizedRing { return s.Plain }); plain > 0 {
		printf(out, "%s with more than the %s points that the operator builds: refused under every version\n",
			plural(plain, "rung", "rungs"), groupDigits(plan.MaxPoints))
	}
	printf(out, "\n")
	for _, a := range r.Advice {
		printf(out, "%s: %s\n", a.Version, a.Message)
	}
}

// refused counts the rungs of which the operator does not build a ring.
func (r *SizeReport) refused(of func(SizeRung) SizedRing) int {
	n := 0
	for _, rung := range r.Rungs {
		if of(rung).Refused {
			n++
		}
	}
	return n
}

func (r *SizeReport) ladder(w io.Writer) {
	printf(w, "\tRANDOM\tPLAIN (V2)\t\t\tTRIMMED (V3)\t\tTIES LOST\tSIZE IN\tPUBLISHED\n")
	printf(w, "POINTS\tMAX/AVG\tCV\tMAX/AVG\tMEASURED\tMAX/AVG\tMEASURED\tOF 32 BITS\tBYTES\tAS\n")
	for _, s := range r.Rungs {
		printf(w, "%d\t%.3f\t%s\t%.3f\t%s\t%s\t%s\t%s\t%d\t%s\n", s.PointsPerWeight,
			s.PredictedMaxOverAverage, percent(s.PredictedCoefficientOfVariation, 2),
			s.Plain.PredictedMaxOverAverage, s.Plain.measuredText(), s.Trimmed.predictedText(), s.Trimmed.measuredText(),
			countOf(s.PredictedCollisions), s.Plain.Bytes, s.Plain.publishedText())
	}
}

// predictedText leaves out what cannot be had.
func (s SizedRing) predictedText() string {
	if s.Refused {
		return "-"
	}
	return fmt.Sprintf("%.3f", s.PredictedMaxOverAverage)
}

func (s SizedRing) measuredText() string {
	if s.MaxOverAverage == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *s.MaxOverAverage)
}

// countOf prints an expected number: small ones with a decimal.
func countOf(x float64) string {
	if x < 100 {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

// csv writes the ladder as a table of numbers, those that were not measured and those of refused rings empty.
func (r *SizeReport) csv(out io.Writer) error {
	w := csv.NewWriter(out)
	lines := [][]string{{
		"points_per_weight", "points", "predicted_cv", "predicted_max_over_avg", "predicted_collisions",
		"plain_predicted_max_over_avg", "plain_max_over_avg", "plain_bytes", "plain_fits_configmap",
		"trimmed_predicted_max_over_avg", "trimmed_max_over_avg", "trimmed_bytes", "trimmed_fits_configmap",
		"plain_published_as", "trimmed_published_as",
	}}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	sized := func(s SizedRing) []string {
		if s.Refused {
			return make([]string, 4)
		}
		measured := ""
		if s.MaxOverAverage != nil {
			measured = number(*s.MaxOverAverage)
		}
		return []string{number(s.PredictedMaxOverAverage), measured, strconv.FormatUint(s.Bytes, 10), strconv.FormatBool(s.FitsConfigMap)}
	}
	for _, s := range r.Rungs {
		line := []string{
			strconv.Itoa(s.PointsPerWeight), strconv.FormatUint(s.Points, 10),
			number(s.PredictedCoefficientOfVariation), number(s.PredictedMaxOverAverage), number(s.PredictedCollisions),
		}
		line = append(append(line, sized(s.Plain)...), sized(s.Trimmed)...)
		lines = append(lines, append(line, s.Plain.publishedText(), s.Trimmed.publishedText()))
	}
	return w.WriteAll(lines)
}
