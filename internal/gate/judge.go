// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/common/model"

	"github.com/ringwright/ringwright/internal/migration"
)

// MaxDetailBytes is how long the text of a result can be.
const MaxDetailBytes = 400

// answer is what a query gave: a number, or why there is none.
type answer struct {
	value float64
	// at is the time of the data by the server.
	at time.Time
	// result is NoData or Error where there is no number, and why says more.
	result migration.Result
	why    string
}

func (a answer) known() *float64 {
	if a.result != "" {
		return nil
	}
	return &a.value
}

// one returns the number that an answer has. At is when the query was evaluated, and oldest the time before which data says
// nothing.
func one(v model.Value, at, oldest time.Time) answer {
	noData := func(format string, args ...any) answer {
		return answer{result: migration.NoData, why: fmt.Sprintf(format, args...)}
	}
	failed := func(format string, args ...any) answer {
		return answer{result: migration.Error, why: fmt.Sprintf(format, args...)}
	}
	var value float64
	var stamp model.Time
	switch v := v.(type) {
	case *model.Scalar:
		value, stamp = float64(v.Value), v.Timestamp
	case model.Vector:
		switch {
		case len(v) == 0:
			return noData("no series")
		case len(v) > 1:
			return failed("%d series, and a gate needs one: aggregate them, for example with sum(…)", len(v))
		case v[0].Histogram != nil:
			return failed("a native histogram, and a gate needs a number: use histogram_quantile(…)")
		}
		value, stamp = float64(v[0].Value), v[0].Timestamp
	default:
		return failed("a %s, and a gate needs a number: a range such as [5m] has to be within a function", typeOf(v))
	}
	when := stamp.Time()
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return noData("%s, which is no number: there may be no traffic to divide by", strconv.FormatFloat(value, 'g', -1, 64))
	case when.Before(oldest):
		return noData("a value of %s before, which is too old", at.Sub(when).Truncate(time.Second))
	case when.After(at): // The clock of a server that is ahead makes nothing newer than it is.
		when = at
	}
	return answer{value: value, at: when}
}

func typeOf(v model.Value) string {
	if v == nil {
		return "nothing"
	}
	return v.Type().String()
}

// judge says what numbers mean. Those of baseline and samples that are not known leave open what depends on them.
func (c compiled) judge(value, baseline, samples answer) (migration.Result, string) {
	for _, a := range []struct {
		name string
		answer
	}{{"query", value}, {"baselineQuery", baseline}, {"samplesQuery", samples}} {
		if a.result == migration.Error || a.result != "" && a.name == "query" {
			return a.result, a.name + ": " + a.why
		}
	}
	n := c.numbers(value, baseline, samples)
	if c.MinSamples > 0 {
		switch {
		case n.samples == nil:
			return migration.NoData, c.shown(n) + ": samplesQuery: " + samples.why
		case *n.samples < float64(c.MinSamples):
			return migration.Inconclusive, fmt.Sprintf("%s: at least %d samples are needed", c.shown(n), c.MinSamples)
		}
	}
	result, why := c.decide(n)
	if result == migration.NoData {
		for _, a := range []struct {
			name string
			answer
		}{{"baselineQuery", baseline}, {"samplesQuery", samples}} {
			if a.result != "" { // What is not asked for has no result.
				why += "; " + a.name + ": " + a.why
			}
		}
	}
	return result, c.shown(n) + ": " + why
}

// numbers are those that are known.
func (c compiled) numbers(value, baseline, samples answer) numbers {
	n := numbers{value: value.known()}
	if c.baseline != "" {
		n.baseline = baseline.known()
	}
	if c.Prometheus.SamplesQuery != "" {
		n.samples = samples.known()
	}
	return n
}

// decide evaluates the expressions: harm goes before all else, and what cannot be excluded does not pass.
func (c compiled) decide(n numbers) (migration.Result, string) {
	fails, passes := isFalse, isTrue // Without passWhen all is well where failWhen is false.
	var err error
	if c.fail != nil {
		if fails, err = c.fail.eval(n); err != nil {
			return migration.Error, "failWhen: " + err.Error()
		}
	}
	if fails == isTrue {
		return migration.Fail, "failWhen holds: " + c.FailWhen
	}
	if c.pass != nil {
		if passes, err = c.pass.eval(n); err != nil {
			return migration.Error, "passWhen: " + err.Error()
		}
	}
	switch {
	case fails == unknown:
		return migration.NoData, "failWhen depends on what is not known"
	case passes == unknown:
		return migration.NoData, "passWhen depends on what is not known"
	case passes == isTrue && c.pass != nil:
		return migration.Pass, "passWhen holds: " + c.PassWhen
	case passes == isTrue:
		return migration.Pass, "failWhen does not hold: " + c.FailWhen
	case c.fail == nil:
		return migration.Inconclusive, "passWhen does not hold: " + c.PassWhen
	default:
		return migration.Inconclusive, "neither failWhen nor passWhen holds: " + c.PassWhen
	}
}

// shown are the numbers, for people.
func (c compiled) shown(n numbers) string {
	var parts []string
	for _, p := range []struct {
		name   string
		number *float64
	}{{"value", n.value}, {"baseline", n.baseline}, {"samples", n.samples}} {
		if p.number != nil {
			parts = append(parts, p.name+" "+strconv.FormatFloat(*p.number, 'g', 6, 64))
		}
	}
	return strings.Join(parts, ", ")
}

// text makes printable text of at most MaxDetailBytes of what others wrote.
func text(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > MaxDetailBytes {
		s = strings.ToValidUTF8(s[:MaxDetailBytes-len("…")], "") + "…"
	}
	return s
}
