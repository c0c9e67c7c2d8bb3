// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// million is the whole of a ratio: a percentage with 4 decimals is a whole number of millionths.
const million = 1_000_000

// parseRatio returns a percentage, 0% to 100% with at most 4 decimals, in millionths.
func parseRatio(text string) (uint64, error) {
	wrong := fmt.Errorf("must be a percentage from 0%% to 100%% with at most 4 decimals, such as 0.1%%")
	digits, percent := strings.CutSuffix(text, "%")
	whole, decimals, dotted := strings.Cut(digits, ".")
	if !percent || whole == "" || len(whole) > 3 || dotted && decimals == "" || len(decimals) > 4 {
		return 0, wrong
	}
	n, err := strconv.ParseUint(whole+(decimals + "0000")[:4], 10, 64)
	if err != nil || n > million {
		return 0, wrong
	}
	return n, nil
}

// exceeds says whether part of whole is more than limit millionths, without rounding.
func exceeds(part, whole, limit uint64) bool {
	high, low := bits.Mul64(part, million)
	limitHigh, limitLow := bits.Mul64(whole, limit)
	return high > limitHigh || high == limitHigh && low > limitLow
}
