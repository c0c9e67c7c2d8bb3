// SPDX-License-Identifier: Apache-2.0

package promclient

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
	// MaxAttempts is how often a query is sent until there is an answer, within its timeout, firstDelay apart at first and twice that
	// each time, with jitter.
	MaxAttempts = 3
	firstDelay  = 250 * time.Millisecond
	// OpenFor is how long nobody asks after tripAfter failures in a row; after that one query does.
	OpenFor   = 30 * time.Second
	tripAfter = 5
	// keepServer is how long one that nobody asks is kept.
	keepServer = 2 * time.Hour
)

// Options say what may be asked, and by whom.
type Options struct {
	// MaxAnswerBytes is how large the body of an answer may be, and Hint what to do where it is larger.
	MaxAnswerBytes int
	Hint           string
	// UserAgent is sent with each request.
	UserAgent string
	// Loopback is for tests: it allows addresses of this host.
	Loopback bool
}

// Pool has the Prometheus servers that are asked.
type Pool struct {
	options Options
	// Transport makes what speaks to one address, with the certificates that its server is checked by, "" for those of the system. Tests
	// replace it.
	Transport func(ca string) *http.Transport

	mu   sync.Mutex
	byID map[serverID]*Server
}

// serverID tells servers apart, and the credentials with which they are asked: what those of one do has no effect on others.
type serverID struct {
	address     string
	credentials [sha256.Size]byte
}

// Server is one server. It keeps no credentials but the certificates that the server is checked by.
type Server struct {
	options   Options
	address   string
	transport *http.Transport
	breaker   *gobreaker.CircuitBreaker[Reply]
	used      time.Time

	mu sync.Mutex
	// last is the failure that counted last.
	last string
}

// Reply is the answer to a query.
type Reply struct {
	Value    model.Value
	Warnings promv1.Warnings
}

// NewPool returns one that nobody is in.
func NewPool(o Options) *Pool {
	return &Pool{options: o, Transport: func(ca string) *http.Transport { return newTransport(ca, o.Loopback) }, byID: map[serverID]*Server{}}
}

// Get returns the one for an address and credentials, and drops those that nobody has asked for long.
func (p *Pool) Get(address string, c Credentials, now time.Time) *Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, other := range p.byID {
		if now.Sub(other.used) > keepServer {
			other.transport.CloseIdleConnections()
			delete(p.byID, id)
		}
	}
	id := serverID{strings.TrimRight(address, "/"), c.digest()}
	one := p.byID[id]
	if one == nil {
		one = &Server{options: p.options, address: id.address, transport: p.Transport(c.ca)}
		one.breaker = gobreaker.NewCircuitBreaker[Reply](gobreaker.Settings{
			MaxRequests: 1, Timeout: OpenFor,
			ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= tripAfter },
			IsSuccessful: func(err error) bool { return !serverFailed(err) },
			IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
		})
		p.byID[id] = one
	}
	one.used = now
	return one
}

// Open returns how many breakers keep from asking an address, by address.
func (p *Pool) Open() map[string]int {
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

// Close ends all connections that nobody uses.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, one := range p.byID {
		one.transport.CloseIdleConnections()
		delete(p.byID, id)
	}
}

// Question is a query and how it is to be answered.
type Question struct {
	Query string
	At    time.Time
	// Lookback is how old the newest sample of a series may be, and Timeout for all attempts together.
	Lookback, Timeout time.Duration
}

// Ask sends a query until there is an answer, within its timeout. The error is for people, and has no credentials.
func (p *Server) Ask(ctx context.Context, c Credentials, q Question) (Reply, error) {
	client, err := api.NewClient(api.Config{Address: p.address, RoundTripper: session{p.transport, c, p.options}})
	if err != nil {
		return Reply{}, fmt.Errorf("preparing the client: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.Multiplier = firstDelay, 2
	r, err := backoff.Retry(limited, func() (Reply, error) {
		r, err := p.breaker.Execute(func() (Reply, error) {
			value, warnings, _, err := promv1.NewAPI(client).Query(limited, q.Query, q.At,
				promv1.WithTimeout(q.Timeout), promv1.WithLookbackDelta(q.Lookback))
			err = told(err)
			p.note(c, err, q.Timeout)
			return Reply{value, warnings}, err
		})
		if err != nil && !worthAnother(err) {
			return r, backoff.Permanent(err)
		}
		return r, err
	}, backoff.WithBackOff(delays), backoff.WithMaxTries(MaxAttempts))
	if err == nil {
		return r, nil
	}
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return Reply{}, fmt.Errorf("%s is not asked for %s after %d failures in a row: %s", p.address, OpenFor, tripAfter, p.failure())
	}
	return Reply{}, errors.New(c.Redact(explain(err, q.Timeout)))
}

// note remembers a failure.
func (p *Server) note(c Credentials, err error, timeout time.Duration) {
	if !serverFailed(err) || errors.Is(err, context.Canceled) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = c.Redact(explain(err, timeout))
}

func (p *Server) failure() string {
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
		return sent.Err.Error() // Without the URL, which the reader knows.
	default:
		return err.Error()
	}
}
