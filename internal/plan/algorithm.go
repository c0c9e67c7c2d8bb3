// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// DefaultMaxImbalance is spec.algorithm.maxImbalance where spec does not set it. The schema has no default, so that a field
// that was set is told from one that was not.
const DefaultMaxImbalance = "1%"

// maxAllFeatures is of how many features every combination is a view: those of more are more than ring.MaxViews.
const maxAllFeatures = 6

// imbalanceDigits is how many decimals spec.algorithm.maxImbalance can have: a millionth is 0.0001 %.
const imbalanceDigits = 4

// algorithm translates spec.algorithm into the terms of the engine.
func algorithm(a v1alpha1.Algorithm) (ring.Algorithm, error) {
	out := ring.Algorithm{
		Version: map[v1alpha1.AlgorithmVersion]ring.Version{
			v1alpha1.AlgorithmV1: ring.V1, v1alpha1.AlgorithmV2: ring.V2, v1alpha1.AlgorithmV3: ring.V3,
		}[a.Version],
		PointsPerWeight: uint32(a.PointsPerWeight),
	}
	if out.Version != ring.V3 {
		if a.WeightUnit > 1 { // The schema refuses it too; 0 is a spec that it has not completed.
			return out, refusef(v1alpha1.ReasonInvalidSpec, "spec.algorithm.weightUnit must be 1 with version %s; got %d", a.Version, a.WeightUnit)
		}
		return out, nil
	}
	out.WeightUnit = uint32(a.WeightUnit)
	var err error
	out.MaxImbalance, err = parseImbalance(a.MaxImbalance)
	return out, err
}

// parseImbalance returns millionths.
func parseImbalance(text string) (uint32, error) {
	if text == "" {
		text = DefaultMaxImbalance
	}
	number, percent := strings.CutSuffix(text, "%")
	whole, decimals, _ := strings.Cut(number, ".")
	if percent && len(decimals) <= imbalanceDigits {
		decimals += strings.Repeat("0", imbalanceDigits-len(decimals))
		if n, err := strconv.ParseUint(whole+decimals, 10, 32); err == nil && n >= 1 && n <= 1_000_000 {
			return uint32(n), nil
		}
	}
	return 0, refusef(v1alpha1.ReasonInvalidSpec, "spec.algorithm.maxImbalance must be 0.0001%% to 100%% with at most %d decimals; got %q", imbalanceDigits, text)
}

// FormatImbalance returns millionths in percent, without superfluous digits: "0.5%".
func FormatImbalance(millionths uint32) string {
	return strconv.FormatFloat(float64(millionths)/10_000, 'f', -1, 64) + "%"
}

// views returns the sets of features that a V3 ring is trimmed for; that of all backends is always one of them. Other
// versions have none.
func views(spec v1alpha1.HashRingSpec) ([][]string, error) {
	if spec.Algorithm.Version != v1alpha1.AlgorithmV3 {
		return nil, nil
	}
	var list [][]string
	if spec.Views == v1alpha1.ViewsListed {
		for _, v := range spec.ViewList {
			list = append(list, v)
		}
		return list, nil
	}
	if n := len(spec.Features); n > maxAllFeatures { // The schema refuses it too.
		return nil, refusef(v1alpha1.ReasonInvalidSpec, "spec.views: All makes %d views of %d features, the limit is %d views, of %d features: set spec.views to Listed and name the views in spec.viewList",
			uint64(1)<<n, n, 1<<maxAllFeatures, maxAllFeatures)
	}
	for set := uint(1); set < 1<<len(spec.Features); set++ {
		view := make([]string, 0, bits.OnesCount(set))
		for k, f := range spec.Features {
			if set>>k&1 != 0 {
				view = append(view, f.Name)
			}
		}
		list = append(list, view)
	}
	return list, nil
}

// withoutEffect warns of fields that are set and that the version has no use for. They are not refused, so that a change of
// version is one edit, there and back.
func withoutEffect(spec v1alpha1.HashRingSpec) []v1alpha1.Warning {
	if spec.Algorithm.Version == v1alpha1.AlgorithmV3 {
		return nil
	}
	var fields []string
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"spec.algorithm.maxImbalance", spec.Algorithm.MaxImbalance != ""},
		{"spec.views", spec.Views != ""},
		{"spec.viewList", len(spec.ViewList) > 0},
	} {
		if field.set {
			fields = append(fields, field.name)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return []v1alpha1.Warning{{
		Reason: v1alpha1.WarningFieldWithoutEffect,
		Message: fmt.Sprintf("%s: set, and without effect with version %s, which does not trim; V3 does",
			strings.Join(fields, ", "), spec.Algorithm.Version),
	}}
}
