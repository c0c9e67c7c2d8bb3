// SPDX-License-Identifier: Apache-2.0

// Bars measures every claim that the project makes about itself and prints a line for each:
//
//	name<TAB>figure<TAB>limit<TAB>ok|slow|short
//
// It exits with status 1 if a claim is short of its limit. With -timed=report it does so only for a claim that has the same
// figure on every machine, and prints a speed that is short as "slow": continuous integration runs beside other work, and a
// gate that fails by chance teaches everybody to pass it by. No figure is kept from an earlier run; speeds are ratios between
// two ways of doing the same work that take turns in this run, because a machine that is busy slows both.
//
// A new claim is a row in claims.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// direction says on which side of its limit a figure is good.
type direction bool

const (
	atMost  direction = false
	atLeast direction = true
)

// kind says what a figure depends on.
type kind bool

const (
	// exact figures are the same wherever they are measured.
	exact kind = false
	// timed figures depend on the machine and on what else it does.
	timed kind = true
)

// claim is a property that can be measured, and how good it must be.
type claim struct {
	kind kind
	// name says what is measured, in which unit, and on which side of the limit is good.
	name      string
	limit     float64
	direction direction
	measure   func() (float64, error)
}

func main() {
	ctrllog.SetLogger(logr.Discard()) // What the operator's parts would say is no claim.
	mode := flag.String("timed", "fail", "what a speed that is short does: fail, or report")
	flag.Parse()
	if *mode != "fail" && *mode != "report" || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "bars: -timed must be fail or report, and nothing follows it; got %q %q\n", *mode, flag.Args())
		os.Exit(2)
	}
	if !report(os.Stdout, os.Stderr, claims(), *mode == "report") {
		os.Exit(1)
	}
}

// report measures the claims in turn, prints a line for each, and says whether all hold. A claim that cannot be measured
// does not hold; why is told to problems. With tolerant, those that are timed hold wherever they can be measured.
func report(out, problems io.Writer, list []claim, tolerant bool) bool {
	all := true
	for _, c := range list {
		figure, err := c.measure()
		text, verdict := number(figure), "ok"
		if err != nil {
			_, _ = fmt.Fprintf(problems, "%s: %v\n", c.name, err)
			text = "none"
		}
		switch {
		case err == nil && c.holds(figure):
		case err == nil && tolerant && c.kind == timed && !math.IsNaN(figure):
			verdict = "slow"
		default:
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
