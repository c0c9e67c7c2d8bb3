// SPDX-License-Identifier: Apache-2.0

// Package orca reads OrcaLoadReports (https://github.com/cncf/xds, xds/data/orca/v3), in which servers say how loaded they are.
//
// What they say of:
//
//	CPU       cpu_utilization, 1 for all that the server may use; 0 is taken for not reported, which is the same in this message
//	requests  rps_fractional (or rps, which is deprecated) times the window, if it is not 0
//	errors    eps times the window, where there are requests
//	in flight named_metrics["in_flight"], the mean number of requests in flight
//	custom    named_metrics or utilization, by the name in the policy
package orca

import (
	"cmp"
	"fmt"
	"math"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"

	"github.com/ringwright/ringwright/internal/loadreport"
)

const (
	// InFlight is the key of named_metrics for the mean number of requests in flight.
	InFlight = "in_flight"
	// MaxBytes is how large an encoded report is.
	MaxBytes = 16 << 10
	// MaxEntries is how many entries each of its maps has.
	MaxEntries = 100
)

// Read sets the figures of into to those of a report over a window, and returns a *loadreport.Error where one of them cannot be true. custom is
// the name of the custom metric, "" for none. It does not set, nor check, what else a report of a load has.
func Read(report *orcav3.OrcaLoadReport, window time.Duration, custom string, into *loadreport.Report) error {
	nan := math.NaN()
	into.Window = window
	into.CPU, into.InFlight, into.Custom, into.Requests, into.Errors = nan, nan, nan, nan, nan
	for _, m := range []struct {
		field  string
		values map[string]float64
	}{{"named_metrics", report.GetNamedMetrics()}, {"utilization", report.GetUtilization()}, {"request_cost", report.GetRequestCost()}} {
		if len(m.values) > MaxEntries {
			return &loadreport.Error{Reason: loadreport.TooLarge, Field: m.field, Value: fmt.Sprint(len(m.values)), Limit: fmt.Sprintf("of at most %d entries", MaxEntries)}
		}
	}
	if err := readRates(report, window, into); err != nil {
		return err
	}
	if value := report.GetCpuUtilization(); value != 0 {
		if err := loadreport.CheckFigure("cpu_utilization", value, loadreport.MaxUtilization); err != nil {
			return err
		}
		into.CPU = value
	}
	if value, ok := report.GetNamedMetrics()[InFlight]; ok {
		if err := loadreport.CheckFigure(`named_metrics["in_flight"]`, value, loadreport.MaxFigure); err != nil {
			return err
		}
		into.InFlight = value
	}
	return readCustom(report, custom, into)
}

func readRates(report *orcav3.OrcaLoadReport, window time.Duration, into *loadreport.Report) error {
	rps := cmp.Or(report.GetRpsFractional(), float64(report.GetRps())) //nolint:staticcheck // Old clients send it.
	eps := report.GetEps()
	if err := loadreport.CheckFigure("rps_fractional", rps, loadreport.MaxFigure); err != nil {
		return err
	}
	if err := loadreport.CheckFigure("eps", eps, loadreport.MaxFigure); err != nil {
		return err
	}
	if eps > rps {
		return &loadreport.Error{Reason: loadreport.ErrorsAboveRequests, Field: "eps", Value: fmt.Sprint(eps), Limit: fmt.Sprintf("at most rps_fractional, %g", rps)}
	}
	if rps > 0 && window > 0 {
		// A long window of a fast server is not too many requests: only the ratios count beyond that.
		scale := min(window.Seconds(), loadreport.MaxFigure/rps)
		into.Requests, into.Errors = rps*scale, eps*scale
	}
	return nil
}

func readCustom(report *orcav3.OrcaLoadReport, custom string, into *loadreport.Report) error {
	if custom == "" {
		return nil
	}
	field := "named_metrics"
	value, ok := report.GetNamedMetrics()[custom]
	if !ok {
		field = "utilization"
		value, ok = report.GetUtilization()[custom]
	}
	if !ok {
		return nil
	}
	if err := loadreport.CheckFigure(fmt.Sprintf("%s[%q]", field, custom), value, loadreport.MaxFigure); err != nil {
		return err
	}
	into.Custom = value
	return nil
}

// Missing is why a report is refused that has no figure.
func Missing(custom string) *loadreport.Error {
	limit := `one with cpu_utilization, rps_fractional or named_metrics["in_flight"] above 0`
	if custom != "" {
		limit += fmt.Sprintf(", or with %q in named_metrics or utilization", custom)
	}
	return &loadreport.Error{Reason: loadreport.NoFigure, Field: "the report", Value: "none of them", Limit: limit}
}
