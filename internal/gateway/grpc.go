// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/internal/orca"
)

// Push takes a report of the pod that calls.
func (g *Gateway) Push(ctx context.Context, request *balancerv1.PushRequest) (*balancerv1.PushResponse, error) {
	ctx, err := g.options.Authenticator.Call(ctx)
	if err != nil {
		return nil, err
	}
	sent := pushed{read: func() (*orcav3.OrcaLoadReport, error) {
		if n := len(request.GetReport()); n > orca.MaxBytes {
			return nil, sizeProblem("report", fmt.Sprint(n))
		}
		return unmarshal(request.GetReport())
	}}
	if w := request.GetWindow(); w != nil { // Absent, it is the time since the last report.
		if err := checkWindow(w.AsDuration()); err != nil {
			return nil, callError(g.refusedBy(err))
		}
		sent.window = w.AsDuration()
	}
	interval, err := g.push(ctx, sent)
	if err != nil {
		return nil, callError(err)
	}
	return &balancerv1.PushResponse{Interval: durationpb.New(interval)}, nil
}

// callError returns a problem as the error of a call, with the time to wait as RetryInfo.
func callError(err error) error {
	p := &problem{kind: invalid, text: err.Error()}
	errors.As(err, &p)
	s := status.New(p.code, p.text)
	if p.retryAfter > 0 {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(p.retryAfter)}); err == nil {
			s = detailed
		}
	}
	return s.Err()
}
