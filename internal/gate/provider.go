// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/sony/gobreaker/v2"
)

const (
	// maxAttempts is how often a query is sent until there is an answer, within its timeout, firstDelay apart at first and twice that
	// each time, with jitter.
	maxAttempts = 3
	firstDelay  = 250 * time.Millisecond
	// tripAfter is how many failures in a row open the breaker, and openFor how long nobody asks then; after that one query does.
	tripAfter = 5
	openFor   = 30 * time.Second
	// keepProvider is how long one that nobody asks is kept.
	keepProvider = 2 * time.Hour
)

// providers are the Prometheus servers that gates ask, of all migrations.
type providers struct {
	// transport makes what speaks to one address, with the certificates that its server is checked by.
	transport func(ca string) *http.Transport

	mu   sync.Mutex
	byID map[providerID]*provider
}

// providerID tells servers apart, and the credentials with which they are asked: what one migration's do has no effect on others.
type providerID struct {
	address     string
	credentials [sha256.Size]byte
}

// provider is one server. It keeps no credentials but the certificates that the server is checked by.
type provider struct {
	address   string
	transport *http.Transport
	breaker   *gobreaker.CircuitBreaker[reply]
	used      time.Time

	mu sync.Mutex
	// last is the failure that counted last.
	last string
}

// reply is the answer to a query.
type reply struct {
	value    model.Value
	warnings promv1.Warnings
}

func newProviders(loopback bool) *providers {
	return &providers{transport: func(ca string) *http.Transport { return newTransport(ca, loopback) }, byID: map[providerID]*provider{}}
}

// get returns the one for an address and credentials, and drops those that nobody has asked for long.
func (p *providers) get(address string, c credentials, now time.Time) *provider {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, other := range p.byID {
		if now.Sub(other.used) > keepProvider {
			other.transport.CloseIdleConnections()
			delete(p.byID, id)
		}
	}
	id := providerID{strings.TrimRight(address, "/"), c.digest()}
	one := p.byID[id]
	if one == nil {
		one = &provider{address: id.address, transport: p.transport(c.ca)}
		one.breaker = gobreaker.NewCircuitBreaker[reply](gobreaker.Settings{
			MaxRequests: 1, Timeout: openFor,
			ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= tripAfter },
			IsSuccessful: func(err error) bool { return !serverFailed(err) },
			IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
		})
		p.byID[id] = one
	}
	one.used = now
	return one
}

// open returns how many breakers keep from asking an address, by address.
func (p *providers) open() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := make(map[string]int, len(p.byID))
	for id, one := range p.byID {
		open[id.address] += 0
		if one.breaker.State() != gobreaker.StateClosed {
			open[id.address]++
		}
	}
	return open
}

// close ends all connections that nobody uses.
func (p *providers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, one := range p.byID {
		one.transport.CloseIdleConnections()
		delete(p.byID, id)
	}
}

// question is a query and how it is to be answered.
type question struct {
	query string
	at    time.Time
	// lookback is how old the newest sample of a series may be.
	lookback, timeout time.Duration
}

// ask sends a query until there is an answer, within its timeout. The error is for people, and has no credentials.
func (p *provider) ask(ctx context.Context, c credentials, q question) (reply, error) {
	client, err := api.NewClient(api.Config{Address: p.address, RoundTripper: session{p.transport, c}})
	if err != nil {
		return reply{}, fmt.Errorf("preparing the client: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.Multiplier = firstDelay, 2
	r, err := backoff.Retry(limited, func() (reply, error) {
		r, err := p.breaker.Execute(func() (reply, error) {
			value, warnings, _, err := promv1.NewAPI(client).Query(limited, q.query, q.at,
				promv1.WithTimeout(q.timeout), promv1.WithLookbackDelta(q.lookback))
			err = told(err)
			p.note(c, err, q.timeout)
			return reply{value, warnings}, err
		})
		if err != nil && !worthAnother(err) {
			return r, backoff.Permanent(err)
		}
		return r, err
	}, backoff.WithBackOff(delays), backoff.WithMaxTries(maxAttempts))
	if err == nil {
		return r, nil
	}
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return reply{}, fmt.Errorf("%s is not asked for %s after %d failures in a row: %s", p.address, openFor, tripAfter, p.failure())
	}
	return reply{}, errors.New(c.redact(explain(err, q.timeout)))
}

// note remembers a failure.
func (p *provider) note(c credentials, err error, timeout time.Duration) {
	if !serverFailed(err) || errors.Is(err, context.Canceled) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = c.redact(explain(err, timeout))
}

func (p *provider) failure() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// told returns what a server said where the client only has its status: a Prometheus says why with 503 too.
func told(err error) error {
	var answered *promv1.Error
	if !errors.As(err, &answered) || answered.Type != promv1.ErrServer {
		return err
	}
	var body struct {
		ErrorType promv1.ErrorType `json:"errorType"`
		Error     string           `json:"error"`
	}
	if json.Unmarshal([]byte(answered.Detail), &body) != nil || body.ErrorType == "" || body.Error == "" {
		return err
	}
	return &promv1.Error{Type: body.ErrorType, Msg: body.Error}
}

// serverFailed says whether an error is one of the server, or of the way to it, and not of what it was asked.
func serverFailed(err error) bool {
	var refused refusal
	if err == nil || errors.As(err, &refused) {
		return false
	}
	var answered *promv1.Error
	if !errors.As(err, &answered) {
		return true
	}
	switch answered.Type {
	case promv1.ErrBadData, promv1.ErrExec, promv1.ErrBadResponse:
		return false
	case promv1.ErrClient:
		return tooMany(answered)
	default:
		return true
	}
}

// tooMany says that a server was asked too often.
func tooMany(e *promv1.Error) bool { return strings.HasSuffix(e.Msg, " 429") }

// worthAnother says whether the same query may be answered if it is sent again.
func worthAnother(err error) bool {
	if !serverFailed(err) || errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	var answered *promv1.Error
	return !errors.As(err, &answered) || answered.Type != promv1.ErrTimeout
}

// explain says what went wrong.
func explain(err error, timeout time.Duration) string {
	var answered *promv1.Error
	var sent *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", timeout)
	case errors.As(err, &answered) && answered.Type == promv1.ErrClient && strings.HasSuffix(answered.Msg, " 401"):
		return "it does not accept the credentials (HTTP status 401)"
	case errors.As(err, &answered) && answered.Type == promv1.ErrClient && strings.HasSuffix(answered.Msg, " 403"):
		return "it does not allow the query with these credentials (HTTP status 403)"
	case errors.As(err, &answered) && answered.Type == promv1.ErrBadResponse:
		return "it does not answer as a Prometheus does: " + answered.Msg
	case errors.As(err, &sent):
		return sent.Err.Error() // Without the URL, which is that of the gate.
	default:
		return err.Error()
	}
}
