// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// reviewer is an API server that takes tokens of which good says so.
type reviewer struct {
	calls atomic.Int64
	do    func(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error)
}

func (r *reviewer) Create(ctx context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.calls.Add(1)
	review = review.DeepCopy()
	var err error
	review.Status, err = r.do(ctx, review.Spec.Token)
	return review, err
}

// pod is the status of the token of a pod.
func pod() authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{DefaultAudience},
		User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:shop:checkout", Groups: []string{"system:serviceaccounts", "system:authenticated"},
			Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {"checkout-1"}, "authentication.kubernetes.io/pod-uid": {"uid-1"},
				"authentication.kubernetes.io/node-name": {"node-1"},
			},
		},
	}
}

func accepts(status authenticationv1.TokenReviewStatus) *reviewer {
	return &reviewer{do: func(context.Context, string) (authenticationv1.TokenReviewStatus, error) { return status, nil }}
}

// jwt returns what looks like a token that expires at a time.
func jwt(expires time.Time) string {
	return "h." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expires.Unix())) + ".s"
}

func TestIdentity(t *testing.T) {
	a := New(Options{Reviews: accepts(pod()), Clock: clocktesting.NewFakePassiveClock(t0)})
	got, err := a.Authenticate(t.Context(), jwt(t0.Add(time.Hour)))
	want := Identity{"system:serviceaccount:shop:checkout", "shop", "checkout", "checkout-1", "uid-1", "node-1", t0.Add(time.Hour)}
	if got.Expires = got.Expires.UTC(); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	other, none, human := pod(), pod(), pod()
	other.Audiences, none.Audiences = []string{"https://kubernetes.default.svc"}, nil
	human.User.Groups = []string{"system:authenticated"} // Its name and extra fields are somebody else's to give.
	for name, test := range map[string]struct {
		token  string
		status authenticationv1.TokenReviewStatus
		text   string
	}{
		"none":           {"", pod(), "no token"},
		"long":           {strings.Repeat("x", MaxTokenBytes+1), pod(), "the token has 8193 bytes, and the limit is 8192"},
		"characters":     {"a b", pod(), "characters"},
		"expired":        {jwt(t0), pod(), "the token expired at 2026-03-01T12:00:00Z"},
		"not valid":      {"x", authenticationv1.TokenReviewStatus{Error: "secret details"}, `the API server does not accept the token for audience "ringwright-balancer"`},
		"other audience": {"x", other, "not for audience"},
		"no audience":    {"x", none, "not for audience"},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := New(Options{Reviews: accepts(test.status), Clock: clocktesting.NewFakePassiveClock(t0)}).Authenticate(t.Context(), test.token)
			if !errors.Is(err, ErrUnauthenticated) || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "secret") || id != (Identity{}) {
				t.Fatalf("%+v, %v", id, err)
			}
		})
	}
	id, err := New(Options{Reviews: accepts(human)}).Authenticate(t.Context(), "x")
	if err != nil || id != (Identity{User: human.User.Username}) {
		t.Fatalf("%+v, %v", id, err)
	}
}

func TestAnswersCount(t *testing.T) {
	away := errors.New("away")
	r := accepts(pod())
	accept := r.do
	clock := clocktesting.NewFakePassiveClock(t0)
	a := New(Options{Reviews: r, Clock: clock})
	token := jwt(t0.Add(15 * time.Minute))
	ask := func(after time.Duration, want error, calls int64) {
		t.Helper()
		clock.SetTime(t0.Add(after))
		before := r.calls.Load()
		if _, err := a.Authenticate(t.Context(), token); !errors.Is(err, want) {
			t.Fatalf("after %s: %v, want %v", after, err, want)
		}
		if n := r.calls.Load() - before; n != calls {
			t.Fatalf("after %s: %d reviews, want %d", after, n, calls)
		}
	}
	ask(0, nil, 1)
	ask(59*time.Second, nil, 0)
	ask(time.Minute, nil, 1)
	r.do = func(context.Context, string) (authenticationv1.TokenReviewStatus, error) {
		return authenticationv1.TokenReviewStatus{}, away
	}
	ask(2*time.Minute, nil, 1)                              // The grace begins.
	ask(2*time.Minute+999*time.Millisecond, nil, 0)         // It was asked just now.
	ask(2*time.Minute+time.Second, nil, 1)                  // And again.
	ask(10*time.Minute+59*time.Second, nil, 1)              // Grace counts from the review in minute 1.
	ask(11*time.Minute, ErrUnavailable, 1)                  // It is over.
	ask(11*time.Minute+time.Millisecond, ErrUnavailable, 1) // There is nothing to keep from asking for.
	r.do = func(context.Context, string) (authenticationv1.TokenReviewStatus, error) {
		return authenticationv1.TokenReviewStatus{}, nil
	}
	ask(12*time.Minute, ErrUnauthenticated, 1)
	ask(12*time.Minute+4999*time.Millisecond, ErrUnauthenticated, 0)
	r.do = accept
	ask(12*time.Minute+5*time.Second, nil, 1)
	clock.SetTime(t0.Add(15 * time.Minute)) // The token expired, though its answer is known.
	a.options.PositiveTTL = time.Hour
	ask(15*time.Minute, ErrUnauthenticated, 0)
}

// TestRevokedEndsGrace: a token that was refused once has no answer to fall back to.
func TestRevokedEndsGrace(t *testing.T) {
	clock, r := clocktesting.NewFakePassiveClock(t0), accepts(pod())
	a := New(Options{Reviews: r, Clock: clock})
	for i, test := range []struct {
		status authenticationv1.TokenReviewStatus
		err    error
		want   error
	}{{status: pod()}, {want: ErrUnauthenticated}, {err: errors.New("away"), want: ErrUnavailable}} {
		r.do = func(context.Context, string) (authenticationv1.TokenReviewStatus, error) {
			return test.status, test.err
		}
		clock.SetTime(t0.Add(time.Duration(i) * time.Minute))
		if _, err := a.Authenticate(t.Context(), "x"); !errors.Is(err, test.want) {
			t.Fatalf("%d: %v", i, err)
		}
	}
}

func TestBadTokensPushNoGoodOnesOut(t *testing.T) {
	r := &reviewer{do: func(_ context.Context, token string) (authenticationv1.TokenReviewStatus, error) {
		if token == "good" {
			return pod(), nil
		}
		return authenticationv1.TokenReviewStatus{}, nil
	}}
	a := New(Options{Reviews: r, Tokens: 10, Clock: clocktesting.NewFakePassiveClock(t0)})
	for i := range 100 {
		_, bad := a.Authenticate(t.Context(), fmt.Sprint("bad-", i))
		if _, err := a.Authenticate(t.Context(), "good"); err != nil || bad == nil {
			t.Fatal(err, bad)
		}
	}
	if n := r.calls.Load(); n != 101 || a.valid.Len() != 1 || a.refused.Len() != 10 {
		t.Fatalf("%d reviews; %d and %d tokens are remembered", n, a.valid.Len(), a.refused.Len())
	}
}

// TestFewReviews has many callers of one token, and of many.
func TestFewReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := &reviewer{do: func(ctx context.Context, _ string) (authenticationv1.TokenReviewStatus, error) {
			select {
			case <-release:
				return pod(), nil
			case <-ctx.Done():
				return authenticationv1.TokenReviewStatus{}, ctx.Err()
			}
		}}
		a := New(Options{Reviews: r, MaxReviews: 2, MaxWaiting: 8})
		var wg sync.WaitGroup
		var ok, unavailable atomic.Int64
		ask := func(ctx context.Context, token string) {
			wg.Go(func() {
				switch _, err := a.Authenticate(ctx, token); {
				case err == nil:
					ok.Add(1)
				case errors.Is(err, ErrUnavailable):
					unavailable.Add(1)
				}
			})
		}
		first, leave := context.WithCancel(t.Context())
		ask(first, "same")
		synctest.Wait()
		for range 5 {
			ask(t.Context(), "same")
		}
		synctest.Wait()
		leave() // The review goes on for the others.
		synctest.Wait()
		if n := r.calls.Load(); n != 1 {
			t.Fatalf("%d reviews of one token", n)
		}
		for i := range 20 {
			ask(t.Context(), fmt.Sprint("other-", i))
		}
		synctest.Wait()
		if n := r.calls.Load(); n != 2 || unavailable.Load() != 15 { // Room for 10, of which 5 are there.
			t.Fatalf("%d reviews, %d refused", n, unavailable.Load())
		}
		close(release)
		wg.Wait()
		if ok.Load() != 10 || r.calls.Load() != 6 {
			t.Fatalf("%d passed, %d reviews", ok.Load(), r.calls.Load())
		}
		release = make(chan struct{}) // A server that does not answer.
		ask(t.Context(), "late")
		wg.Wait()
		if unavailable.Load() != 16 {
			t.Fatal("it waited for ever")
		}
	})
}

func TestMiddleware(t *testing.T) {
	for name, test := range map[string]struct {
		header string
		status authenticationv1.TokenReviewStatus
		err    error
		code   int
		grpc   codes.Code
		body   string
	}{
		"good":      {"Bearer x", pod(), nil, 200, codes.OK, "uid-1"},
		"lower":     {"bearer x", pod(), nil, 200, codes.OK, "uid-1"},
		"basic":     {"Basic x", pod(), nil, 401, codes.Unauthenticated, `{"error":"unauthenticated: no token; send \"Authorization: Bearer \u003ctoken\u003e\""}` + "\n"},
		"none":      {"", pod(), nil, 401, codes.Unauthenticated, `{"error":"unauthenticated: no token; send \"Authorization: Bearer \u003ctoken\u003e\""}` + "\n"},
		"not valid": {"Bearer x", authenticationv1.TokenReviewStatus{}, nil, 401, codes.Unauthenticated, `{"error":"unauthenticated: the API server does not accept the token for audience \"ringwright-balancer\""}` + "\n"},
		"away":      {"Bearer x", pod(), errors.New("dial tcp 10.0.0.1"), 503, codes.Unavailable, `{"error":"cannot authenticate now"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reviewer{do: func(context.Context, string) (authenticationv1.TokenReviewStatus, error) {
				return test.status, test.err
			}}
			a := New(Options{Reviews: r})
			request, w := httptest.NewRequest("POST", "/", nil), httptest.NewRecorder()
			request.Header.Set("Authorization", test.header)
			a.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				id, _ := FromContext(r.Context())
				_, _ = w.Write([]byte(id.PodUID))
			})).ServeHTTP(w, request)
			if w.Code != test.code || w.Body.String() != test.body {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if (w.Header().Get("Retry-After") != "") != (w.Code == 503) || (w.Header().Get("WWW-Authenticate") != "") != (w.Code == 401) {
				t.Error(w.Header())
			}
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", test.header))
			_, err := a.Unary(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
				if id, ok := FromContext(ctx); !ok || id.PodUID != "uid-1" {
					t.Errorf("%+v", id)
				}
				return nil, nil
			})
			if status.Code(err) != test.grpc {
				t.Error(err)
			}
		})
	}
	if _, ok := FromContext(t.Context()); ok {
		t.Fatal("nobody called")
	}
}
