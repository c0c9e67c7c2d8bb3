// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/loadreport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	t0  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	nan = math.NaN()
)

var equal = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9)}

// reviews take the token "pod-x" for that of the pod with UID x, "sa-x" for one of a service account without a pod.
type reviews struct{}

func (reviews) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	review = review.DeepCopy()
	kind, name, ok := strings.Cut(review.Spec.Token, "-")
	if !ok {
		return review, nil
	}
	review.Status = authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{authn.DefaultAudience},
		User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:" + name, Groups: []string{"system:serviceaccounts"}},
	}
	if kind == "pod" {
		review.Status.User.Extra = map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/pod-uid": {name}, "authentication.kubernetes.io/pod-name": {"name-of-" + name},
		}
	}
	return review, nil
}

// directory has the pods a, of two policies, and b.
type directory struct{}

func (directory) Endpoints(uid string) []Target {
	switch {
	case uid == "a":
		return []Target{{"shop/checkout", "a", "", 10 * time.Second}, {"shop/queue", "a", "depth", 5 * time.Second}}
	case strings.HasPrefix(uid, "b"):
		return []Target{{Policy: "shop/checkout", Endpoint: uid}}
	}
	return nil
}

// sink keeps what it takes.
type sink struct {
	mu      sync.Mutex
	reports []loadreport.Report
}

func (s *sink) take(reports ...loadreport.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, reports...)
}

type fixture struct {
	*Gateway
	sink     sink
	clock    *clocktesting.FakePassiveClock
	registry *prometheus.Registry
}

func newFixture() *fixture {
	f := &fixture{clock: clocktesting.NewFakePassiveClock(t0), registry: prometheus.NewRegistry()}
	f.Gateway = New(Options{
		Directory: directory{}, Sink: f.sink.take, Clock: f.clock, Metrics: loadreport.NewMetrics(f.registry),
		Authenticator: authn.New(authn.Options{Reviews: reviews{}, Clock: f.clock}),
	})
	return f
}

// refused checks what was counted.
func (f *fixture) refused(t *testing.T, reason loadreport.Reason) {
	t.Helper()
	want := ""
	if reason != "" {
		want = `# HELP ringwright_load_reports_refused_total Load reports that were refused or dropped, by source and reason.
# TYPE ringwright_load_reports_refused_total counter
ringwright_load_reports_refused_total{reason="` + string(reason) + `",source="Push"} 1
`
	}
	if err := testutil.GatherAndCompare(f.registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func pushedReport(policy, endpoint string, window time.Duration) loadreport.Report {
	return loadreport.Report{
		Policy: policy, Endpoint: endpoint, Source: v1alpha1.SourcePush, End: t0, Window: window,
		CPU: nan, InFlight: nan, Custom: nan, Requests: nan, Errors: nan,
	}
}
