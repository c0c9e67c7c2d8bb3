// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// encode returns a report as replicas send it.
func encode(r loadreport.Report) *balancerv1.Report {
	figure := func(value float64) *float64 {
		if math.IsNaN(value) {
			return nil
		}
		return &value
	}
	return &balancerv1.Report{
		Policy: r.Policy, Endpoint: r.Endpoint, Source: string(r.Source), Reporter: r.Reporter,
		End: timestamppb.New(r.End), Window: durationpb.New(r.Window),
		Cpu: figure(r.CPU), InFlight: figure(r.InFlight), Custom: figure(r.Custom), Requests: figure(r.Requests), Errors: figure(r.Errors),
	}
}

// decode returns what a replica sent, unchecked. A time or a window that is none is one that the store refuses.
func decode(r *balancerv1.Report) loadreport.Report {
	figure := func(value *float64) float64 {
		if value == nil {
			return math.NaN()
		}
		return *value
	}
	var end time.Time
	if r.GetEnd().CheckValid() == nil {
		end = r.GetEnd().AsTime()
	}
	window := r.GetWindow().AsDuration()
	if r.GetWindow() != nil && r.GetWindow().CheckValid() != nil {
		window = -1
	}
	return loadreport.Report{
		Policy: r.GetPolicy(), Endpoint: r.GetEndpoint(), Source: v1alpha1.LoadSourceType(r.GetSource()), Reporter: r.GetReporter(),
		End: end, Window: window,
		CPU: figure(r.Cpu), InFlight: figure(r.InFlight), Custom: figure(r.Custom), Requests: figure(r.Requests), Errors: figure(r.Errors),
	}
}
