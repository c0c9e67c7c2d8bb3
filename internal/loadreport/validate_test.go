// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var (
	nan = math.NaN()
	t0  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// good is a report of all figures.
func good() Report {
	return Report{
		Policy: "shop/checkout", Endpoint: "a", Source: v1alpha1.SourcePush, End: t0, Window: 5 * time.Second,
		CPU: 0.5, InFlight: 3, Custom: 1, Requests: 100, Errors: 1,
	}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Report)
		reason Reason
		text   string
	}{
		"all figures":           {change: func(*Report) {}},
		"one figure":            {change: func(r *Report) { r.InFlight, r.Custom, r.Requests, r.Errors = nan, nan, nan, nan }},
		"no figure":             {func(r *Report) { r.CPU, r.InFlight, r.Custom, r.Requests, r.Errors = nan, nan, nan, nan, nan }, NoFigure, "the report must be one with a figure at least; got none"},
		"negative CPU":          {func(r *Report) { r.CPU = -0.1 }, Negative, "cpu_utilization must be a number from 0 to 1000; got -0.1"},
		"negative in flight":    {func(r *Report) { r.InFlight = -1 }, Negative, "in_flight must be a number from 0 to 1e+09; got -1"},
		"negative custom":       {func(r *Report) { r.Custom = -1 }, Negative, "custom"},
		"negative requests":     {func(r *Report) { r.Requests = -1 }, Negative, "requests"},
		"negative errors":       {func(r *Report) { r.Errors = -1 }, Negative, "errors"},
		"endless CPU":           {func(r *Report) { r.CPU = math.Inf(1) }, NotFinite, "cpu_utilization must be a number from 0 to 1000; got +Inf"},
		"endless the other way": {func(r *Report) { r.InFlight = math.Inf(-1) }, NotFinite, "in_flight"},
		"largest CPU":           {change: func(r *Report) { r.CPU = 1000 }},
		"CPU too large":         {func(r *Report) { r.CPU = 1000.1 }, TooLarge, "cpu_utilization must be a number from 0 to 1000; got 1000.1"},
		"largest in flight":     {change: func(r *Report) { r.InFlight = 1e9 }},
		"in flight too large":   {func(r *Report) { r.InFlight = 1.1e9 }, TooLarge, "in_flight"},
		"requests too large":    {func(r *Report) { r.Requests = 1.1e9 }, TooLarge, "requests"},
		"all fail":              {change: func(r *Report) { r.Errors = 100 }},
		"more than all fail":    {func(r *Report) { r.Errors = 101 }, ErrorsAboveRequests, "errors must be at most requests, 100; got 101"},
		"end 5 s ahead":         {change: func(r *Report) { r.End = t0.Add(5 * time.Second) }},
		"end too far ahead":     {func(r *Report) { r.End = t0.Add(5*time.Second + 1) }, Future, "end must be at most 5s from now; got 2026-03-01T12:00:05.000000001Z"},
		"nearly too old":        {change: func(r *Report) { r.End = t0.Add(-time.Hour + 1) }},
		"too old":               {func(r *Report) { r.End = t0.Add(-time.Hour) }, Stale, "end must be less than 1h0m0s ago"},
		"no end":                {func(r *Report) { r.End = time.Time{} }, Stale, "end"},
		"longest window":        {change: func(r *Report) { r.Window = time.Hour }},
		"window too long":       {func(r *Report) { r.Window = time.Hour + 1 }, BadWindow, "window must be from 0s to 1h0m0s; got 1h0m0.000000001s"},
		"window negative":       {func(r *Report) { r.Window = -1 }, BadWindow, "window"},
		"no window":             {func(r *Report) { r.Window = 0 }, BadWindow, "window must be more than 0s where requests are counted; got 0s"},
		"a moment":              {change: func(r *Report) { r.Window, r.Requests, r.Errors = 0, nan, nan }},
		"no policy":             {func(r *Report) { r.Policy = "" }, BadName, "policy must be named; got none"},
		"no endpoint":           {func(r *Report) { r.Endpoint = "" }, BadName, "endpoint"},
		"longest reporter":      {change: func(r *Report) { r.Reporter = strings.Repeat("x", 512) }},
		"reporter too long":     {func(r *Report) { r.Reporter = strings.Repeat("x", 513) }, BadName, "reporter must be a name of at most 512 bytes; got 513 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			test.change(&r)
			err := r.Validate(t0)
			if test.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var refused *Error
			if !errors.As(err, &refused) || refused.Reason != test.reason || !strings.HasPrefix(err.Error(), test.text) {
				t.Fatalf("%v, want %s: %s…", err, test.reason, test.text)
			}
		})
	}
}
