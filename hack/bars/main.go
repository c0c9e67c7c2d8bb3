// SPDX-License-Identifier: Apache-2.0

// Bars measures every claim that the project makes about itself and prints a line for each:
//
//	name<TAB>figure<TAB>limit<TAB>ok|short
//
// It exits with status 1 if a claim is short of its limit. No figure is kept from an earlier run; speeds are ratios between
// two ways of doing the same work that take turns in this run, because a machine that is busy slows both.
//
// A new claim is a row in claims.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

// direction says on which side of its limit a figure is good.
type direction bool

const (
	atMost  direction = false
	atLeast direction = true
)

// claim is a property that can be measured, and how good it must be.
type claim struct {
	// name says what is measured, in which unit, and on which side of the limit is good.
	name      string
	limit     float64
	direction direction
	measure   func() (float64, error)
}

func main() {
	if !report(os.Stdout, os.Stderr, claims()) {
		os.Exit(1)
	}
}

// report measures the claims in turn, prints a line for each, and says whether all hold. A claim that cannot be measured
// does not hold; why is told to problems.
func report(out, problems io.Writer, list []claim) bool {
	all := true
	for _, c := range list {
		figure, err := c.measure()
		text, verdict := number(figure), "ok"
		if err != nil {
			_, _ = fmt.Fprintf(problems, "%s: %v\n", c.name, err)
			text = "none"
		}
		if err != nil || !c.holds(figure) {
			verdict, all = "short", false
		}
		if _, err := fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", c.name, text, number(c.limit), verdict); err != nil {
			all = false // A claim that nobody is told of is not shown to hold.
		}
	}
	return all
}

// holds compares before anything is rounded for print. A figure that is not a number never holds.
func (c claim) holds(figure float64) bool {
	if c.direction == atLeast {
		return figure >= c.limit
	}
	return figure <= c.limit
}

// number prints x in the fewest digits, at most four of them significant, but all of a whole number.
func number(x float64) string {
	if x == float64(int64(x)) {
		return strconv.FormatInt(int64(x), 10)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}
