// SPDX-License-Identifier: Apache-2.0

package apisource

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// lockedContext has ended, and says whether it was asked under the lock of the source.
type lockedContext struct {
	context.Context
	source   *Source
	unlocked bool
}

func (c *lockedContext) Err() error {
	if c.source.mu.TryLock() {
		c.source.mu.Unlock()
		c.unlocked = true
	}
	return context.Canceled
}

// TestForgottenStaysForgotten: a watch that was stopped notes nothing, and looks at that where nobody can come in between.
func TestForgottenStaysForgotten(t *testing.T) {
	s := newSource(Config{HashRing: "cdn/edge", Logger: slog.New(slog.DiscardHandler)}, nil)
	ctx := &lockedContext{Context: t.Context(), source: s}
	f := &follower{source: s, ctx: ctx, configMap: "edge-a-1", file: "ring-a.snap.1"}
	f.note(errors.New("broken"))
	f.note(nil)
	f.take(nil)
	s.noteEvent(ctx, "edge-a-1")
	if ctx.unlocked {
		t.Error("the context was asked without the lock")
	}
	if len(s.files)+len(s.health)+len(s.counters.watchErrors) > 0 {
		t.Errorf("files %v, health %v, errors %v", s.files, s.health, s.counters.watchErrors)
	}
}

// TestDirectoryOfSomebodyElse: what cannot be taken over is told before anything starts.
func TestDirectoryOfSomebodyElse(t *testing.T) {
	for _, name := range []string{"routing.json", "ring-a.snap", "..data"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := NewFor(Config{HashRing: "cdn/edge", Dir: dir}, &rest.Config{Host: "https://127.0.0.1:1"})
		if err == nil || !strings.Contains(err.Error(), "holds "+name+" that is no link") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lost+found"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFor(Config{HashRing: "cdn/edge", Dir: dir}, &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
		t.Errorf("another file: %v", err)
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// TestLogs: a name without ConfigMaps is told as that, and a failure of a watch once for each.
func TestLogs(t *testing.T) {
	const (
		// nothing is the answer to a watch with which the reflector begins: there is no object.
		nothing = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1",` +
			`"annotations":{"k8s.io/initial-events-end":"true"}}}}`
		forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not for you"}`
	)
	for name, row := range map[string]struct {
		code       int
		body, want string
		n          int
	}{
		"a typo":    {http.StatusOK, nothing, "ConfigMap cdn/edge-routing: does not exist", 1},
		"forbidden": {http.StatusForbidden, forbidden, "not for you", 3},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(row.code)
				_, _ = io.WriteString(w, row.body)
				if row.code == http.StatusOK {
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				}
			}))
			defer api.Close()
			log := &lines{}
			s, err := NewFor(Config{HashRing: "cdn/edge", Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(log, nil))}, &rest.Config{Host: api.URL})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			for log.count(row.want) < row.n && ctx.Err() == nil {
				<-time.After(10 * time.Millisecond)
			}
			cancel()
			if err := <-ended; err != nil || log.count(row.want) != row.n || log.count("level=ERROR") > 0 {
				t.Errorf("error %v, log:\n%s", err, &log.text)
			}
		})
	}
}
