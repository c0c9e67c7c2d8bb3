// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"fmt"
	"math"
	"time"
)

// The limits of what a report says.
const (
	// MaxUtilization is the largest CPU: a process that uses a thousand times what it may is a mistake of units.
	MaxUtilization = 1000
	// MaxFigure is the largest value of any other figure.
	MaxFigure = 1e9
	// MaxAhead is how far in the future a report may end, for clocks differ.
	MaxAhead = 5 * time.Second
	// MaxWindow is the longest window.
	MaxWindow = time.Hour
	// MaxAge is the age from which a report counts for no policy.
	MaxAge = time.Hour
	// MaxNameBytes is how long the name of a policy, an endpoint or a reporter is.
	MaxNameBytes = 512
)

// Validate says whether a report can be true: as an *Error of the first thing that cannot. A figure may be NaN, but not all of them.
func (r Report) Validate(now time.Time) error {
	if err := r.validateNames(); err != nil {
		return err
	}
	if err := r.validateTime(now); err != nil {
		return err
	}
	figures := [...]struct {
		name  string
		value float64
		limit float64
	}{
		{"cpu_utilization", r.CPU, MaxUtilization}, {"in_flight", r.InFlight, MaxFigure}, {"custom", r.Custom, MaxFigure},
		{"requests", r.Requests, MaxFigure}, {"errors", r.Errors, MaxFigure},
	}
	for _, f := range figures {
		if math.IsNaN(f.value) {
			continue
		}
		if err := CheckFigure(f.name, f.value, f.limit); err != nil {
			return err
		}
	}
	if r.Empty() {
		return refuse(NoFigure, "the report", "none", "one with a figure at least")
	}
	if r.Errors > r.Requests {
		return refuse(ErrorsAboveRequests, "errors", r.Errors, fmt.Sprintf("at most requests, %g", r.Requests))
	}
	return nil
}

// CheckFigure says whether a value is a number from 0 to limit, as an *Error that names the field.
func CheckFigure(field string, value, limit float64) error {
	if value >= 0 && value <= limit {
		return nil
	}
	reason := NotFinite
	switch {
	case math.IsNaN(value), math.IsInf(value, 0):
	case value < 0:
		reason = Negative
	default:
		reason = TooLarge
	}
	return refuse(reason, field, value, fmt.Sprintf("a number from 0 to %g", limit))
}

func (r Report) validateNames() error {
	for _, n := range [...]struct {
		name, value string
		empty       bool
	}{{"policy", r.Policy, false}, {"endpoint", r.Endpoint, false}, {"reporter", r.Reporter, true}} {
		if len(n.value) > MaxNameBytes {
			return refuse(BadName, n.name, fmt.Sprintf("%d bytes", len(n.value)), fmt.Sprintf("a name of at most %d bytes", MaxNameBytes))
		}
		if n.value == "" && !n.empty {
			return refuse(BadName, n.name, "none", "named")
		}
	}
	return nil
}

func (r Report) validateTime(now time.Time) error {
	counts := !math.IsNaN(r.Requests) || !math.IsNaN(r.Errors)
	switch {
	case r.Window < 0, r.Window > MaxWindow:
		return refuse(BadWindow, "window", r.Window, fmt.Sprintf("from 0s to %s", MaxWindow))
	case r.Window == 0 && counts:
		return refuse(BadWindow, "window", r.Window, "more than 0s where requests are counted")
	}
	switch age := now.Sub(r.End); {
	case age < -MaxAhead:
		return refuse(Future, "end", r.End.UTC().Format(time.RFC3339Nano), fmt.Sprintf("at most %s from now", MaxAhead))
	case age >= MaxAge:
		return refuse(Stale, "end", r.End.UTC().Format(time.RFC3339Nano), fmt.Sprintf("less than %s ago", MaxAge))
	}
	return nil
}

// Empty says whether a report has no figure.
func (r Report) Empty() bool {
	return math.IsNaN(r.CPU) && math.IsNaN(r.InFlight) && math.IsNaN(r.Custom) && math.IsNaN(r.Requests) && math.IsNaN(r.Errors)
}
