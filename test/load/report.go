// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// kind says what a figure depends on.
type kind bool

const (
	// exact figures are the same wherever they are measured.
	exact kind = false
	// timed figures depend on the machine and on what else it does.
	timed kind = true
)

// unlimited is the limit of a figure that has none.
const unlimited = math.MaxFloat64

// result is what was measured, and the most that it may be.
type result struct {
	kind          kind
	name          string
	figure, limit float64
}

// report prints the results and says whether all hold. With tolerant, those that are timed hold in any case.
func report(out io.Writer, results []result, tolerant bool) bool {
	all := true
	for _, r := range results {
		limit, verdict := number(r.limit), "ok"
		switch {
		case r.limit == unlimited:
			limit = "-"
		case r.figure <= r.limit: // What is not a number is not.
		case tolerant && r.kind == timed && !math.IsNaN(r.figure):
			verdict = "slow"
		default:
			verdict, all = "short", false
		}
		if _, err := fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", r.name, number(r.figure), limit, verdict); err != nil {
			all = false // A figure that nobody is told of is not shown to hold.
		}
	}
	return all
}

// number prints whole numbers in full and others with three significant digits.
func number(x float64) string {
	if x == float64(int64(x)) {
		return strconv.FormatInt(int64(x), 10)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// percentile returns the smallest of the values that at least p percent of them do not exceed; not a number without any.
// It sorts them.
func percentile(values []time.Duration, p int) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	rank := (len(values)*p + 99) / 100
	return values[max(rank, 1)-1].Seconds()
}
