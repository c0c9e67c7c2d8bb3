// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// ask has the API server review a token, once for all that ask at the same time. It goes on where the first of them leaves.
func (a *Authenticator) ask(ctx context.Context, key digest, token string, expires time.Time) (*answer, error) {
	select {
	case a.waiting <- struct{}{}:
		defer func() { <-a.waiting }()
	default:
		return nil, fmt.Errorf("%w: %d tokens wait to be reviewed", ErrUnavailable, a.options.MaxWaiting)
	}
	result := a.flight.DoChan(string(key[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.options.Timeout)
		defer cancel()
		select {
		case a.running <- struct{}{}:
			defer func() { <-a.running }()
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: no review began within %s", ErrUnavailable, a.options.Timeout)
		}
		return a.review(ctx, key, token, expires)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*answer), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// review asks the API server, and remembers what it says.
func (a *Authenticator) review(ctx context.Context, key digest, token string, expires time.Time) (*answer, error) {
	// The time before the request: what it says was true then.
	now := a.options.Clock.Now()
	review, err := a.options.Reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{a.options.Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		a.retry.Store(a.options.Clock.Now().Add(retryAfter).UnixNano())
		// The text of the error can have an address of the cluster, but none of it is of the token.
		return nil, fmt.Errorf("%w: reviewing the token: %w", ErrUnavailable, err)
	}
	identity, err := a.identify(review.Status)
	identity.Expires = expires
	answered := &answer{identity: identity, err: err, at: now}
	if err != nil {
		a.valid.Remove(key)
		a.refused.Add(key, answered)
	} else {
		a.valid.Add(key, answered)
	}
	return answered, nil
}

// identify returns whom a review is of.
func (a *Authenticator) identify(status authenticationv1.TokenReviewStatus) (Identity, error) {
	switch {
	case !status.Authenticated:
		return Identity{}, fmt.Errorf("%w: the API server does not accept the token for audience %q", ErrUnauthenticated, a.options.Audience)
	case !slices.Contains(status.Audiences, a.options.Audience):
		return Identity{}, fmt.Errorf("%w: the token is not for audience %q", ErrUnauthenticated, a.options.Audience)
	}
	user := status.User
	id := Identity{User: user.Username}
	namespace, name, err := serviceaccount.SplitUsername(user.Username)
	if err != nil || !slices.Contains(user.Groups, serviceaccount.AllServiceAccountsGroup) {
		return id, nil
	}
	id.Namespace, id.ServiceAccount = namespace, name
	one := func(key string) string {
		if values := user.Extra[key]; len(values) == 1 {
			return values[0]
		}
		return ""
	}
	id.PodName, id.PodUID, id.NodeName = one(serviceaccount.PodNameKey), one(serviceaccount.PodUIDKey), one(serviceaccount.NodeNameKey)
	return id, nil
}

// expiry returns when a token says that it expires; zero where it does not. It only ends what the API server said earlier.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 {
		return time.Time{}
	}
	return time.Unix(claims.Exp, 0)
}
