// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// admit refuses what cannot be proxied and what is too much.
func (x *exchange) admit(r *http.Request, running int64) *problem {
	config := &x.p.config
	switch {
	case running > int64(config.MaxRequests):
		return &problem{
			status: http.StatusServiceUnavailable, reason: reasonBusy, retryAfter: 1, Error: "too many requests are running",
			Field: "--proxy-max-requests", Value: strconv.FormatInt(running, 10), Limit: strconv.Itoa(config.MaxRequests),
		}
	case r.Method == http.MethodConnect:
		return &problem{
			status: http.StatusNotImplemented, reason: reasonMethod, Error: "this proxy makes no tunnels to where a client wants",
			Field: "method", Value: r.Method, Limit: "every other method",
		}
	case r.RequestURI == "*" || r.URL.Opaque != "":
		return &problem{
			status: http.StatusNotImplemented, reason: reasonTarget, Error: "this is a request for no object, so that no backend owns it",
			Field: "request target", Value: r.RequestURI, Limit: "a path, or http:// with a host and a path",
		}
	case config.MaxBody > 0 && r.ContentLength > config.MaxBody:
		return x.bodyProblem(strconv.FormatInt(r.ContentLength, 10))
	}
	return nil
}

func (x *exchange) bodyProblem(size string) *problem {
	return &problem{
		status: http.StatusRequestEntityTooLarge, reason: reasonBodySize, closes: true, Error: "the request body is too large",
		Field: "body", Value: size, Limit: fmt.Sprintf("%d bytes", x.p.config.MaxBody),
	}
}

// route finds the backend of a request.
func (x *exchange) route(r *http.Request) *problem {
	if p := x.makeKey(r); p != nil {
		return p
	}
	if p := x.askFeatures(r); p != nil {
		return p
	}
	x.state = x.p.client.State()
	if x.state == nil {
		p := &problem{status: http.StatusServiceUnavailable, reason: reasonNoRing, retryAfter: 1, Error: ringclient.ErrNotLoaded.Error()}
		if last := x.p.client.Stats().LastError; last != nil {
			p.Error += ": " + last.Err.Error()
		}
		return p
	}
	decision, err := x.state.Pick(x.key, x.features...)
	if err != nil {
		return x.lookupProblem(err)
	}
	x.p.config.Movement.Note(ring.Hash(x.key), x.features, decision)
	x.take(decision)
	return nil
}

func (x *exchange) makeKey(r *http.Request) *problem {
	config := &x.p.config
	key, empty := x.p.template.AppendKey(x.keyBytes[:0], r)
	if empty {
		switch config.EmptyKey {
		case EmptyKeyPath:
			key, _ = x.p.byPath.AppendKey(x.keyBytes[:0], r)
		case EmptyKeyKeep:
		default:
			return &problem{
				status: http.StatusBadRequest, reason: reasonKeyEmpty, Error: "the request has no key: nothing that the key is made of is there",
				Field: "key", Value: "", Limit: config.Key,
			}
		}
	}
	if len(key) > MaxKeyBytes {
		return &problem{
			status: http.StatusBadRequest, reason: reasonKeySize, Error: fmt.Sprintf("the key has %d bytes", len(key)),
			Field: "key", Value: string(key), Limit: fmt.Sprintf("%d bytes", MaxKeyBytes),
		}
	}
	x.key = key
	return nil
}

// askFeatures adds those that the client asks for to those that every request has.
func (x *exchange) askFeatures(r *http.Request) *problem {
	config := &x.p.config
	x.features = config.Features
	if config.FeaturesHeader == "" {
		return nil
	}
	given := r.Header.Values(config.FeaturesHeader)
	if len(given) == 0 {
		return nil
	}
	text := strings.Join(given, ",")
	bad := func(message, limit string) *problem {
		return &problem{status: http.StatusBadRequest, reason: reasonFeatures, Error: message, Field: config.FeaturesHeader, Value: text, Limit: limit}
	}
	x.features = slices.Clone(config.Features)
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			return bad("a feature has no name", "names with commas between them")
		}
		if x.features = append(x.features, name); len(x.features) > ring.MaxFeatures {
			return bad("too many features are named", fmt.Sprintf("%d features", ring.MaxFeatures))
		}
	}
	return nil
}

// lookupProblem says why the ring gave no backend. What the client did not ask for is not its fault.
func (x *exchange) lookupProblem(err error) *problem {
	config := &x.p.config
	p := &problem{status: http.StatusServiceUnavailable, reason: reasonNoBackend, retryAfter: 1, Field: "--proxy-features"}
	if len(x.features) > len(config.Features) {
		p.Field = config.FeaturesHeader
	}
	var unknown *ring.UnknownFeatureError
	switch {
	case errors.As(err, &unknown):
		p.reason = reasonFeatures
		p.Error, p.Value, p.Limit = "the ring does not declare this feature", unknown.Name, "none is declared"
		if len(unknown.Declared) > 0 {
			p.Limit = strings.Join(unknown.Declared, ", ")
		}
		if !slices.Contains(config.Features, unknown.Name) {
			p.status, p.retryAfter = http.StatusBadRequest, 0
		}
	case errors.Is(err, ring.ErrNoBackend):
		p.Error, p.Value = "no backend may own the key: none has the features and a weight", strings.Join(x.features, ",")
	default:
		p.Error, p.Field = err.Error(), ""
	}
	return p
}
