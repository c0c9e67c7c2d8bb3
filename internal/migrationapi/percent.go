// SPDX-License-Identifier: Apache-2.0

package migrationapi

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ringwright/ringwright/pkg/routing"
)

// decimals is how many a percentage has: those of basis points.
const decimals = 2

// BasisPoints returns the basis points of a percentage from 0% to 100% with at most 2 decimals. Its error names the text.
func BasisPoints(text string) (int, error) {
	number, percent := strings.CutSuffix(text, "%")
	whole, fraction, _ := strings.Cut(number, ".")
	if percent && whole != "" && len(fraction) <= decimals {
		fraction += strings.Repeat("0", decimals-len(fraction))
		if n, err := strconv.ParseUint(whole+fraction, 10, 32); err == nil && n <= routing.MaxBasisPoints {
			return int(n), nil
		}
	}
	return 0, fmt.Errorf("%q is not a percentage from 0%% to 100%% with at most %d decimals", text, decimals)
}

// Percent returns basis points as a percentage without superfluous digits, such as "0.5%".
func Percent(basisPoints int) string {
	text := fmt.Sprintf("%d.%02d", basisPoints/100, basisPoints%100)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
}

// Number writes a figure for people; "" for none.
func Number(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', 6, 64)
}
