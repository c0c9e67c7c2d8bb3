// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var errCut = errors.New("the link is cut")

// link is an operator's way to the API server. It can be stopped, so that nothing passes until it goes on, and cut. The Lease always
// passes, so that a successor need not wait until it has expired.
type link struct {
	mu sync.Mutex
	// last says whether a request is the last one: the API server gets it, and nothing passes any more. Nil never does.
	last func(*http.Request) bool
	// stops says whether the link stops before a request; nil never does.
	stops func(*http.Request) bool
	// only are the requests that stop when the link does; nil is all of them.
	only func(*http.Request) bool
	// open is closed while the link is open, and cut from when it is cut.
	open, cut chan struct{}
	// stopped is closed when stops was true.
	stopped chan struct{}
}

func newLink() *link {
	open := make(chan struct{})
	close(open)
	return &link{open: open, cut: make(chan struct{}), stopped: make(chan struct{})}
}

func (l *link) wrap(next http.RoundTripper) http.RoundTripper { return &linked{link: l, next: next} }

// stop lets nothing pass until resume.
func (l *link) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halt()
}

func (l *link) halt() {
	select {
	case <-l.open:
		l.open = make(chan struct{})
	default:
	}
}

// stopAt stops the link before the first request that has a property.
func (l *link) stopAt(stops func(*http.Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stops = stops
}

func (l *link) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
}

// gateOf returns what a request has to wait for, with the lock held.
func (l *link) gateOf(r *http.Request) <-chan struct{} {
	if l.only != nil && !l.only(r) {
		open := make(chan struct{})
		close(open)
		return open
	}
	return l.open
}

// judge says whether a request is the last one, and what to wait for before it.
func (l *link) judge(r *http.Request) (last bool, open <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stops != nil && l.stops(r) {
		l.stops = nil
		l.halt()
		close(l.stopped)
	}
	if l.last != nil && l.last(r) {
		l.last, last = nil, true
	}
	return last, l.gateOf(r)
}

func (l *link) wait(ctx context.Context, open <-chan struct{}) error {
	select {
	case <-l.cut:
		return errCut
	case <-ctx.Done():
		return ctx.Err()
	case <-open:
		return nil
	}
}

type linked struct {
	link *link
	next http.RoundTripper
}

func (l *linked) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/leases/") || strings.HasSuffix(r.URL.Path, "/leases") {
		return l.next.RoundTrip(r)
	}
	select {
	case <-l.link.cut:
		return nil, errCut
	default:
	}
	last, open := l.link.judge(r)
	if err := l.link.wait(r.Context(), open); err != nil {
		return nil, err
	}
	response, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if last {
		_ = response.Body.Close()
		close(l.link.cut)
		return nil, errCut
	}
	response.Body = &linkedBody{ReadCloser: response.Body, link: l.link, request: r}
	return response, nil
}

// linkedBody is what comes back, such as the events of a watch.
type linkedBody struct {
	io.ReadCloser
	link    *link
	request *http.Request
}

func (b *linkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.link.mu.Lock()
	open := b.link.gateOf(b.request)
	b.link.mu.Unlock()
	if stopped := b.link.wait(b.request.Context(), open); stopped != nil {
		return 0, stopped
	}
	return n, err
}

// writes returns the property of a request that writes to a resource of a namespace as the migration controller; "" is any resource.
func writes(namespace, resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/"+resource) &&
			r.URL.Query().Get("fieldManager") == v1alpha1.FieldManagerMigration
	}
}

// bodyOf returns what a request sends, which stays there for the server.
func bodyOf(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	return string(data)
}
