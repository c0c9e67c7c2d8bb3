// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/xds"
)

// methodStream lets a context have the method of a call.
type methodStream struct {
	grpc.ServerTransportStream
	method string
}

func (s methodStream) Method() string { return s.method }

func TestWhoMayReportByXDS(t *testing.T) {
	const lrs, ads = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats", "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	for name, test := range map[string]struct {
		method, token string
		anonymous     bool
		away          bool
		want          codes.Code
	}{
		"weights are for everybody": {ads, "", false, true, codes.OK},
		"reports without a token":   {lrs, "", false, false, codes.Unauthenticated},
		"that is allowed":           {lrs, "", true, true, codes.OK},
		"with a token":              {lrs, "Bearer good", false, false, codes.OK},
		"with a bad one":            {lrs, "Bearer bad", false, false, codes.Unauthenticated},
		"nobody can tell":           {lrs, "Bearer good", false, true, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			clientset := fake.NewClientset()
			clientset.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
				if test.away {
					return true, nil, errors.New("dial tcp 10.0.0.1:443: connection refused")
				}
				if review.Spec.Token == "good" {
					review.Status = authenticationv1.TokenReviewStatus{
						Authenticated: true, Audiences: review.Spec.Audiences, User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:envoy"},
					}
				}
				return true, review, nil
			})
			p := &parts{
				o:     options(func(o *Options) { o.AnonymousLRS = test.anonymous }),
				authn: authn.New(authn.Options{Reviews: clientset.AuthenticationV1().TokenReviews(), Audience: authn.DefaultAudience}),
			}
			ctx := grpc.NewContextWithServerTransportStream(t.Context(), methodStream{method: test.method})
			if test.token != "" {
				ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", test.token))
			}
			if got := status.Code(p.authorizeClient(ctx, xds.Client{})); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAlwaysRunsOnEveryReplica(t *testing.T) {
	ran := false
	f := always(func(context.Context) error { ran = true; return nil })
	if err := f.Start(t.Context()); err != nil || !ran || f.NeedLeaderElection() {
		t.Errorf("%v, ran %v, leader %v", err, ran, f.NeedLeaderElection())
	}
}
