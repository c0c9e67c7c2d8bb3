// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// errNotKept says that a request body cannot be sent again.
var errNotKept = errors.New("the beginning of the request body is not kept")

// upload is the body of a request on its way to the backends that are tried. It keeps what was read first, up to a limit, until
// the answer comes.
type upload struct {
	control *http.ResponseController
	idle    time.Duration
	// limit is how much is kept, budget that of all bodies.
	limit  int
	budget *budget
	// settled says that the body will not be sent again, done that the request is over.
	settled, done atomic.Bool
	// ended says that the client has sent all of it.
	ended atomic.Bool
	// read is how much came from the client.
	read atomic.Int64

	// mu is held while a read waits for the client. A second attempt then waits for the first one's.
	mu     sync.Mutex
	source io.Reader
	kept   []byte
	// lost says that more was read than is kept.
	lost  bool
	err   error
	armed time.Time
	// reader is that of the last attempt.
	reader *uploadReader
}

// budget is how much memory all request bodies together may be kept in.
type budget struct {
	most          int64
	held, refused atomic.Int64
}

// take asks for some bytes.
func (b *budget) take(n int64) bool {
	if b.held.Add(n) <= b.most {
		return true
	}
	b.held.Add(-n)
	b.refused.Add(1)
	return false
}

// attempt returns a reader of the body from its beginning.
func (u *upload) attempt() *uploadReader {
	u.reader = &uploadReader{upload: u}
	return u.reader
}

// replayable says that the body can be sent from its beginning. While somebody waits for the client, it cannot.
func (u *upload) replayable() bool {
	if !u.mu.TryLock() {
		return false
	}
	defer u.mu.Unlock()
	return !u.lost && !u.settled.Load()
}

// timedOut says that an error is one of waiting.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// failure returns what went wrong on the client's side, nil where nothing did or that is not known yet.
func (u *upload) failure() error {
	if !u.mu.TryLock() {
		return nil
	}
	defer u.mu.Unlock()
	if errors.Is(u.err, io.EOF) {
		return nil
	}
	return u.err
}

// next reads from the client.
func (u *upload) next(p []byte) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	if now := time.Now(); now.Sub(u.armed) > u.idle/4 {
		u.armed = now
		_ = u.control.SetReadDeadline(now.Add(u.idle)) // Only a test's recorder has none.
	}
	n, err := u.source.Read(p)
	u.err = err
	u.read.Add(int64(n))
	switch {
	case u.lost:
	case u.settled.Load() || !u.grow(len(u.kept)+n):
		u.forget()
		u.lost = u.lost || n > 0
	default:
		u.kept = append(u.kept, p[:n]...)
	}
	if errors.Is(err, io.EOF) { // The server has taken the deadline back by then: it reads on to see whether the client is there.
		u.ended.Store(true)
	}
	return n, err
}

// grow makes room for so many bytes in all, and says whether it may.
func (u *upload) grow(size int) bool {
	if size <= cap(u.kept) {
		return true
	}
	room := min(max(size, 2*cap(u.kept)), u.limit)
	if size > u.limit || !u.budget.take(int64(room-cap(u.kept))) {
		return false
	}
	u.kept = append(make([]byte, 0, room), u.kept...)
	return true
}

// forget gives back what is kept.
func (u *upload) forget() {
	u.lost = u.lost || len(u.kept) > 0
	u.budget.held.Add(-int64(cap(u.kept)))
	u.kept = nil
}

// settle says that an answer came. What its attempt has still to read stays.
func (u *upload) settle() {
	u.settled.Store(true)
	u.reader.tidy()
}

// linger is how long the rest of a body is waited for that nobody needs any more.
const linger = 5 * time.Second

// close ends what still reads, and lets the server wait for so long for the rest.
func (u *upload) close(rest time.Duration) {
	u.done.Store(true)
	if u.settled.Store(true); u.reader != nil {
		u.reader.tidy()
	}
	if !u.ended.Load() {
		_ = u.control.SetReadDeadline(time.Now().Add(rest))
	}
}

// uploadReader reads the body for one attempt.
type uploadReader struct {
	upload *upload
	at     int64
}

// Read returns what is kept, then what comes from the client.
func (r *uploadReader) Read(p []byte) (int, error) {
	u := r.upload
	defer r.tidy()
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.at < u.read.Load() {
		if u.lost {
			return 0, errNotKept
		}
		n := copy(p, u.kept[r.at:])
		r.at += int64(n)
		return n, nil
	}
	n, err := u.next(p)
	r.at += int64(n)
	return n, err
}

// tidy gives back what is kept for nobody any more. Whoever holds the lock meanwhile does so after that.
func (r *uploadReader) tidy() {
	u := r.upload
	if !u.settled.Load() || !u.mu.TryLock() {
		return
	}
	defer u.mu.Unlock()
	if u.done.Load() || r == u.reader && r.at == u.read.Load() {
		u.forget()
	}
}

// Close does nothing: the body is not the attempt's.
func (r *uploadReader) Close() error { return nil }
