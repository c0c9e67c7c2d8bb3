// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// DefaultAudience is what tokens for the balancer are made for.
const DefaultAudience = "ringwright-balancer"

// MaxTokenBytes is how long a token is. Those of service accounts have one to two thousand bytes.
const MaxTokenBytes = 8 << 10

// retryAfter is how long a failed review keeps those from asking whose answer is known.
const retryAfter = time.Second

var (
	// ErrUnauthenticated is that there is no token, or that the API server does not take it. It is wrapped.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrUnavailable is that the API server cannot be asked, or that too many tokens wait to be. It is wrapped.
	ErrUnavailable = errors.New("cannot authenticate now")
)

// Identity is whom a token is of.
type Identity struct {
	// User is the name, "system:serviceaccount:<namespace>:<name>" for a service account.
	User string
	// Namespace and ServiceAccount are "" where the user is none.
	Namespace, ServiceAccount string
	// PodName, PodUID and NodeName are those that the token is bound to, "" where it is bound to none.
	PodName, PodUID, NodeName string
	// Expires is when the token does; zero where it does not say.
	Expires time.Time
}

// Options say how to authenticate. Those that are 0 have the defaults.
type Options struct {
	// Reviews asks the API server.
	Reviews authenticationv1client.TokenReviewInterface
	// Audience is what a token has to be made for, default DefaultAudience.
	Audience string
	// PositiveTTL is how long the answer counts that a token is valid, default and at most 1m; NegativeTTL that it is not, default and at most 5s.
	PositiveTTL, NegativeTTL time.Duration
	// Grace is how long the former counts while the API server cannot be asked, default 10m.
	Grace time.Duration
	// Tokens is how many valid tokens are remembered, and as many that are not, default 50,000. One has about 500 bytes.
	Tokens int
	// MaxReviews is how many reviews there are at a time, default 16, and MaxWaiting how many calls can wait for one, default 1,000.
	MaxReviews, MaxWaiting int
	// Timeout is for one review, default 5s.
	Timeout time.Duration
	// Clock is the real one by default.
	Clock clock.PassiveClock
}

func (o Options) withDefaults() Options {
	o.Audience = cmp.Or(o.Audience, DefaultAudience)
	o.PositiveTTL = min(cmp.Or(o.PositiveTTL, time.Minute), time.Minute)
	o.NegativeTTL = min(cmp.Or(o.NegativeTTL, 5*time.Second), 5*time.Second)
	o.Grace = cmp.Or(o.Grace, 10*time.Minute)
	o.Tokens = cmp.Or(o.Tokens, 50_000)
	o.MaxReviews = cmp.Or(o.MaxReviews, 16)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 1000)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Authenticator authenticates tokens by TokenReviews.
type Authenticator struct {
	options Options
	valid   *lru.Cache // Of *answer by digest.
	refused *lru.Cache
	flight  singleflight.Group
	// running and waiting have room for reviews.
	running, waiting chan struct{}
	// retry is the time, in nanoseconds, before which those whose answer is known do not ask.
	retry atomic.Int64
}

// digest tells tokens apart.
type digest = [sha256.Size]byte

// answer is what the API server said of a token.
type answer struct {
	identity Identity
	err      error
	at       time.Time
}

// New returns one.
func New(options Options) *Authenticator {
	o := options.withDefaults()
	return &Authenticator{
		options: o, valid: lru.New(o.Tokens), refused: lru.New(o.Tokens),
		running: make(chan struct{}, o.MaxReviews), waiting: make(chan struct{}, o.MaxReviews+o.MaxWaiting),
	}
}

// Authenticate returns whom a token is of. Errors are ErrUnauthenticated, ErrUnavailable, or that of ctx.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (Identity, error) {
	now := a.options.Clock.Now()
	expires, err := examine(token, now)
	if err != nil {
		return Identity{}, err
	}
	key := sha256.Sum256([]byte(token))
	if known, ok := a.known(key, now); ok {
		return known.identity, known.err
	}
	answered, err := a.ask(ctx, key, token, expires)
	if err == nil {
		return answered.identity, answered.err
	}
	if !errors.Is(err, ErrUnavailable) {
		return Identity{}, err
	}
	if last := get(a.valid, key); last != nil && now.Sub(last.at) < a.options.Grace {
		return last.identity, nil
	}
	return Identity{}, err
}

// examine refuses what no API server has to be asked about, and returns when a token says that it expires.
func examine(token string, now time.Time) (time.Time, error) {
	refuse := func(format string, args ...any) (time.Time, error) {
		return time.Time{}, fmt.Errorf("%w: "+format, append([]any{ErrUnauthenticated}, args...)...)
	}
	switch {
	case token == "":
		return refuse("no token; send \"Authorization: Bearer <token>\"")
	case len(token) > MaxTokenBytes:
		return refuse("the token has %d bytes, and the limit is %d", len(token), MaxTokenBytes)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return refuse("the token has characters that none has")
	}
	expires := expiry(token)
	if !expires.IsZero() && !expires.After(now) {
		return refuse("the token expired at %s", expires.UTC().Format(time.RFC3339))
	}
	return expires, nil
}

// known returns the answer for a token that still counts.
func (a *Authenticator) known(key digest, now time.Time) (*answer, bool) {
	if last := get(a.valid, key); last != nil {
		age := now.Sub(last.at)
		if age < a.options.PositiveTTL || age < a.options.Grace && now.UnixNano() < a.retry.Load() {
			return last, true
		}
	}
	if last := get(a.refused, key); last != nil && now.Sub(last.at) < a.options.NegativeTTL {
		return last, true
	}
	return nil, false
}

func get(cache *lru.Cache, key digest) *answer {
	value, ok := cache.Get(key)
	if !ok {
		return nil
	}
	return value.(*answer)
}
