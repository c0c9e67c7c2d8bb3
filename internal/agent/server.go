// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Bounds of every connection. A lookup is a few microseconds of work, so whoever takes longer is not a caller to wait for.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// statusIdleTimeout is for those who look at the status: they come rarely, and connect again.
	statusIdleTimeout = 10 * time.Second
	// maxHeaderBytes bounds the request line and the headers together. A key of MaxKeyBytes takes three times that where
	// every byte is percent-encoded. Package http reads 4 KiB more.
	maxHeaderBytes = 64 << 10
)

// timeouts bound the requests of a server. Zero is no bound.
type timeouts struct {
	// header is how long the headers of a request may take, read all of it, write the time from its headers to the end of its
	// answer, and idle how long a connection may wait for the next one.
	header, read, write, idle time.Duration
}

// defaultTimeouts are for answers that are made in microseconds. What streams needs others.
var defaultTimeouts = timeouts{header: readHeaderTimeout, read: readTimeout, write: writeTimeout, idle: idleTimeout}

var statusTimeouts = timeouts{header: readHeaderTimeout, read: readTimeout, write: writeTimeout, idle: statusIdleTimeout}

func newHTTPServer(handler http.Handler, log *slog.Logger, t timeouts) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: t.header,
		ReadTimeout:       t.read,
		WriteTimeout:      t.write,
		IdleTimeout:       t.idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// refusal is what a connection beyond the limit gets, whatever it asks.
var refusal = func() []byte {
	const body = `{"error":"too many connections, try again or use fewer"}` + "\n"
	return []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n" +
		"Retry-After: 1\r\nConnection: close\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}()

func refuseHTTP(conn net.Conn) { _, _ = conn.Write(refusal) }
