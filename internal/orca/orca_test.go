// SPDX-License-Identifier: Apache-2.0

package orca

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ringwright/ringwright/internal/loadreport"
)

var nan = math.NaN()

func TestRead(t *testing.T) {
	many := map[string]float64{}
	for i := range MaxEntries + 1 {
		many[fmt.Sprint(i)] = 1
	}
	for name, test := range map[string]struct {
		report *orcav3.OrcaLoadReport
		want   loadreport.Report
		err    string
		reason loadreport.Reason
	}{
		"all": {
			report: &orcav3.OrcaLoadReport{CpuUtilization: 0.5, RpsFractional: 10.5, Eps: 0.5, MemUtilization: 0.3,
				NamedMetrics: map[string]float64{"in_flight": 3, "queue": 7, "other": -1}, Utilization: map[string]float64{"queue": 0.7}},
			want: loadreport.Report{CPU: 0.5, Requests: 21, Errors: 1, InFlight: 3, Custom: 7},
		},
		"nothing":     {report: &orcav3.OrcaLoadReport{}, want: loadreport.Report{CPU: nan, Requests: nan, Errors: nan, InFlight: nan, Custom: nan}},
		"utilization": {report: &orcav3.OrcaLoadReport{Utilization: map[string]float64{"queue": 0}}, want: loadreport.Report{CPU: nan, Requests: nan, Errors: nan, InFlight: nan, Custom: 0}},
		"old rps":     {report: &orcav3.OrcaLoadReport{Rps: 5}, want: loadreport.Report{CPU: nan, Requests: 10, Errors: 0, InFlight: nan, Custom: nan}}, //nolint:staticcheck // Deprecated.
		"idle":        {report: &orcav3.OrcaLoadReport{NamedMetrics: map[string]float64{"in_flight": 0}}, want: loadreport.Report{CPU: nan, Requests: nan, Errors: nan, InFlight: 0, Custom: nan}},
		"most":        {report: &orcav3.OrcaLoadReport{RpsFractional: 1e9, Eps: 5e8}, want: loadreport.Report{CPU: nan, Requests: 1e9, Errors: 5e8, InFlight: nan, Custom: nan}},
		"negative":    {report: &orcav3.OrcaLoadReport{CpuUtilization: -1}, err: "cpu_utilization must be a number from 0 to 1000; got -1", reason: loadreport.Negative},
		"nan":         {report: &orcav3.OrcaLoadReport{CpuUtilization: nan}, err: "cpu_utilization must be a number from 0 to 1000; got NaN", reason: loadreport.NotFinite},
		"percent":     {report: &orcav3.OrcaLoadReport{CpuUtilization: 1001}, err: "cpu_utilization must be a number from 0 to 1000; got 1001", reason: loadreport.TooLarge},
		"in flight":   {report: &orcav3.OrcaLoadReport{NamedMetrics: map[string]float64{"in_flight": math.Inf(1)}}, err: `named_metrics["in_flight"] must be a number from 0 to 1e+09; got +Inf`, reason: loadreport.NotFinite},
		"custom":      {report: &orcav3.OrcaLoadReport{Utilization: map[string]float64{"queue": -1}}, err: `utilization["queue"] must be a number from 0 to 1e+09; got -1`, reason: loadreport.Negative},
		"rps":         {report: &orcav3.OrcaLoadReport{RpsFractional: 1e10}, err: "rps_fractional must be a number from 0 to 1e+09; got 1e+10", reason: loadreport.TooLarge},
		"eps":         {report: &orcav3.OrcaLoadReport{RpsFractional: 1, Eps: 2}, err: "eps must be at most rps_fractional, 1; got 2", reason: loadreport.ErrorsAboveRequests},
		"entries":     {report: &orcav3.OrcaLoadReport{NamedMetrics: many}, err: "named_metrics must be of at most 100 entries; got 101", reason: loadreport.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var got loadreport.Report
			err := Read(test.report, 2*time.Second, "queue", &got)
			if test.err != "" {
				var refused *loadreport.Error
				if !errors.As(err, &refused) || refused.Reason != test.reason || err.Error() != test.err {
					t.Fatalf("%v, want %s: %s", err, test.reason, test.err)
				}
				return
			}
			test.want.Window = 2 * time.Second
			if d := cmp.Diff(test.want, got, cmpopts.EquateNaNs()); d != "" || err != nil {
				t.Fatal(d, err)
			}
		})
	}
}
