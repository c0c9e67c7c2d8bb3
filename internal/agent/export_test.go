// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/internal/movement"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// NewHandler returns the handler of a listener that only programs of the same pod reach.
func NewHandler(client *ringclient.Client, version string) http.Handler {
	config, _ := Config{Dir: "unused", Version: version}.complete()
	return newHandler(config, client).routes(admin)
}

// NewRegistry returns what /metrics shows.
func NewRegistry(client *ringclient.Client) *prometheus.Registry {
	return newMetrics(Config{}, client, movement.New()).registry
}

// NewServer returns a server with shorter times.
func NewServer(handler http.Handler, header, read, write, idle time.Duration) *http.Server {
	config, _ := Config{Dir: "unused"}.complete()
	return newHTTPServer(handler, config.Logger, timeouts{header: header, read: read, write: write, idle: idle})
}

// DefaultServer returns a server with the times that an agent has.
func DefaultServer(handler http.Handler) *http.Server {
	config, _ := Config{Dir: "unused"}.complete()
	return newHTTPServer(handler, config.Logger, defaultTimeouts)
}

// CheckArgs says what of a command line cannot be used.
func CheckArgs(args []string) error {
	parsed, err := parseFlags(args, io.Discard)
	if err == nil {
		_, err = parsed.config.complete()
	}
	return err
}

// Parsed is what a request asks for.
type Parsed struct {
	Keys     [][]byte
	Features []string
	Count    int
}

// ParseQuery reads a query string, and returns false where it is refused.
func ParseQuery(raw string) (Parsed, bool) {
	var q query
	p := q.parse(raw)
	return Parsed{Keys: [][]byte{q.key}, Features: q.features, Count: q.count}, p == nil
}

// ParseBatch reads the body of a batch, and returns false where it is refused.
func ParseBatch(body []byte) (Parsed, bool) {
	b := batch{body: body}
	p := b.parse()
	parsed := Parsed{Features: b.features, Count: b.count}
	for i := range b.ends {
		parsed.Keys = append(parsed.Keys, b.key(i))
	}
	return parsed, p == nil
}
