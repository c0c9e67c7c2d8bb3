// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// idleTimer calls expire once when nothing has happened for some time while somebody waited.
type idleTimer struct {
	idle   time.Duration
	expire func()
	timer  *time.Timer
	// since is when the wait began, in nanoseconds; 0 while nobody waits.
	since atomic.Int64
	// stopped says that nobody waits any more.
	stopped atomic.Bool
}

func startIdleTimer(idle time.Duration, expire func()) *idleTimer {
	t := &idleTimer{idle: idle, expire: expire}
	t.since.Store(time.Now().UnixNano())
	t.timer = time.AfterFunc(idle, t.look)
	return t
}

// look waits for the rest of the time where something has happened meanwhile: to note that costs less than to set a timer.
func (t *idleTimer) look() {
	if t.stopped.Load() {
		return
	}
	rest := t.idle
	if since := t.since.Load(); since != 0 {
		rest -= time.Since(time.Unix(0, since))
	}
	if rest <= 0 {
		t.expire()
		return
	}
	t.timer.Reset(rest)
	if t.stopped.Load() { // Meanwhile: what stop stopped was set again.
		t.timer.Stop()
	}
}

func (t *idleTimer) waits() { t.since.Store(time.Now().UnixNano()) }
func (t *idleTimer) rests() { t.since.Store(0) }

// stop is for good.
func (t *idleTimer) stop() {
	t.stopped.Store(true)
	t.timer.Stop()
}

// download is the body of an answer on its way to the client.
type download struct {
	io.ReadCloser
	x     *exchange
	timer *idleTimer
	read  int64
	// broken says that the backend gave no more of it.
	broken bool
}

// Read gives up when the backend sends nothing for too long. The time that the client takes is not counted.
func (d *download) Read(p []byte) (int, error) {
	d.timer.waits()
	n, err := d.ReadCloser.Read(p)
	d.timer.rests()
	d.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) && d.x.ctx.Err() == nil && !d.broken {
		d.broken = true
		d.x.countError(reasonBroken)
	}
	return n, err
}

// Close counts what was read.
func (d *download) Close() error {
	d.timer.stop()
	d.x.p.metrics.sentBytes.Add(float64(d.read))
	d.read = 0
	return d.ReadCloser.Close()
}

// tunnel is the connection to a backend after the protocol was switched. It ends when no byte went either way for too long.
type tunnel struct {
	io.ReadWriteCloser
	x     *exchange
	timer *idleTimer
	ended func()
}

func newTunnel(x *exchange, inner io.ReadWriteCloser) *tunnel {
	t := &tunnel{ReadWriteCloser: inner, x: x}
	end := func() {
		_ = inner.Close()
		x.writer.closeHijacked() // Else a client that neither reads nor writes would be waited for.
	}
	t.timer = startIdleTimer(x.p.config.IdleTimeout, end)
	t.ended = sync.OnceFunc(x.p.tunnels.add(end))
	return t
}

func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	t.timer.waits()
	t.x.p.metrics.sentBytes.Add(float64(n))
	return n, err
}

func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Write(p)
	t.timer.waits()
	t.x.p.metrics.receivedBytes.Add(float64(n))
	return n, err
}

// Close can be called more than once.
func (t *tunnel) Close() error {
	t.timer.stop()
	t.ended()
	return t.ReadWriteCloser.Close()
}

// CloseWrite tells the backend that no more comes, where its connection can.
func (t *tunnel) CloseWrite() error {
	if half, ok := t.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return t.Close()
}

// tunnels are those that are open: a server that shuts down knows nothing of them.
type tunnels struct {
	mu      sync.Mutex
	open    map[*func()]struct{}
	closed  bool
	running sync.WaitGroup
}

// add notes a tunnel that end ends, and returns what takes it from the list.
func (t *tunnels) add(end func()) (ended func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		go end()
		return func() {}
	}
	if t.open == nil {
		t.open = make(map[*func()]struct{})
	}
	t.open[&end] = struct{}{}
	t.running.Add(1)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, &end)
		t.running.Done()
	}
}

// close ends all and waits for them.
func (t *tunnels) close() {
	t.mu.Lock()
	t.closed = true
	for end := range t.open {
		(*end)() // It closes connections; whoever copies between them takes the tunnel from the list.
	}
	t.mu.Unlock()
	t.running.Wait()
}

// responseWriter bounds how long a client may take to read.
type responseWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration
	armed   time.Time
	status  int

	mu       sync.Mutex
	hijacked net.Conn
}

func (w *responseWriter) arm() {
	if now := time.Now(); now.Sub(w.armed) > w.idle/4 {
		w.armed = now
		_ = w.control.SetWriteDeadline(now.Add(w.idle)) // Only a test's recorder has none.
	}
}

func (w *responseWriter) WriteHeader(status int) {
	w.arm()
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.arm()
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController flush.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack gives the connection to a tunnel.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.control.Hijack()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hijacked = conn
	return conn, buffered, err
}

func (w *responseWriter) closeHijacked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hijacked != nil {
		_ = w.hijacked.Close()
	}
}
