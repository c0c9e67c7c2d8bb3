// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// NewHandler returns the handler of a listener that only programs of the same pod reach.
func NewHandler(client *ringclient.Client, version string) http.Handler {
	config, _ := Config{Dir: "unused", Version: version}.complete()
	return newHandler(config, client).routes(admin)
}

// NewRegistry returns what /metrics shows.
func NewRegistry(client *ringclient.Client) *prometheus.Registry { return newMetrics(client).registry }

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

// Refuse is what a connection beyond the limit gets.
func Refuse(conn net.Conn) { refuseHTTP(conn) }

// CheckArgs says what of a command line cannot be used.
func CheckArgs(args []string) error {
	parsed, err := parseFlags(args, io.Discard)
	if err == nil {
		_, err = parsed.config.complete()
	}
	return err
}
