// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

type contextKey struct{}

// NewContext returns a context that has an identity.
func NewContext(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// FromContext returns who calls.
func FromContext(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(contextKey{}).(Identity)
	return id, ok
}

// Middleware lets requests pass that have a valid bearer token. The identity is in the context.
func (a *Authenticator) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := a.Authenticate(r.Context(), bearer(r.Header.Get("Authorization")))
		if err == nil {
			next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), id)))
			return
		}
		code := http.StatusServiceUnavailable
		if errors.Is(err, ErrUnauthenticated) {
			code = http.StatusUnauthorized
			w.Header().Set("WWW-Authenticate", "Bearer")
		} else {
			w.Header().Set("Retry-After", "5")
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": shown(err)})
	})
}

// shown is what a caller is told: not why the API server cannot be asked.
func shown(err error) string {
	if errors.Is(err, ErrUnauthenticated) {
		return err.Error()
	}
	return ErrUnavailable.Error()
}

// bearer returns the token of a header; "" where there is none.
func bearer(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Call returns the context of a gRPC call with the identity of who calls, or the error of the call.
func (a *Authenticator) Call(ctx context.Context) (context.Context, error) {
	var header string
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) == 1 {
		header = values[0]
	}
	id, err := a.Authenticate(ctx, bearer(header))
	switch {
	case err == nil:
		return NewContext(ctx, id), nil
	case errors.Is(err, ErrUnauthenticated):
		return nil, status.Error(codes.Unauthenticated, shown(err))
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return nil, status.Error(codes.Unavailable, shown(err))
}

// Unary lets calls pass that have a valid bearer token. The identity is in the context.
func (a *Authenticator) Unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, err := a.Call(ctx)
	if err != nil {
		return nil, err
	}
	return next(ctx, request)
}

// Stream does the same for streams, of which it looks at the beginning only.
func (a *Authenticator) Stream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, err := a.Call(stream.Context())
	if err != nil {
		return err
	}
	return next(server, identified{stream, ctx})
}

type identified struct {
	grpc.ServerStream
	ctx context.Context
}

// Context has the identity.
func (s identified) Context() context.Context { return s.ctx }
