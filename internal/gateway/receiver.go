// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// ReceiverOptions say who may send reports.
type ReceiverOptions struct {
	// Users are the names of the users that may, such as "system:serviceaccount:ringwright:balancer".
	Users []string
	// Store takes the reports.
	Store *loadreport.Store
	// Clock is the real one by default.
	Clock clock.PassiveClock
}

// Receiver is the method Report of the service Replicas. Its calls have passed authn's interceptors.
type Receiver struct{ options ReceiverOptions }

// NewReceiver returns one.
func NewReceiver(o ReceiverOptions) *Receiver {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Receiver{options: o}
}

// Authorize says whether a call is from another replica: nil, or the error of a call.
func (r *Receiver) Authorize(ctx context.Context) error {
	id, ok := authn.FromContext(ctx)
	switch {
	case !ok:
		return status.Error(codes.Unauthenticated, "the call has no identity")
	case !slices.Contains(r.options.Users, id.User):
		return status.Errorf(codes.PermissionDenied, "%s is no replica of this balancer", id.User)
	}
	return nil
}

// Report takes the reports of another replica.
func (r *Receiver) Report(ctx context.Context, request *balancerv1.ReportRequest) (*balancerv1.ReportResponse, error) {
	if err := r.Authorize(ctx); err != nil {
		return nil, err
	}
	if n := len(request.GetReports()); n > MaxBatch {
		return nil, status.Errorf(codes.InvalidArgument, "reports must be at most %d; got %d", MaxBatch, n)
	}
	reports := make([]loadreport.Report, len(request.GetReports()))
	for i, sent := range request.GetReports() {
		reports[i] = decode(sent)
	}
	response := &balancerv1.ReportResponse{}
	for reason, n := range r.options.Store.Add(r.options.Clock.Now(), reports...) {
		if response.Refused == nil {
			response.Refused = map[string]uint32{}
		}
		response.Refused[string(reason)] = uint32(n)
	}
	return response, nil
}
