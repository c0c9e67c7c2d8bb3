// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// MaxUnixPathBytes is how long the path of a Unix socket can be on every system that this is built for.
const MaxUnixPathBytes = 103

// lookTimeout is how long it may take to find whether somebody listens on a socket.
const lookTimeout = time.Second

// Unix listens on a Unix socket at path, whose permissions become mode. Who may connect is who may write to it. A socket that is
// there and that nobody listens on is replaced: the process that made it was killed before it could remove it. Closing the
// listener removes the socket.
//
// It returns an error for a socket that somebody listens on, for what is no socket, and for a path of more than
// MaxUnixPathBytes.
func Unix(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	if len(path) > MaxUnixPathBytes {
		return nil, fmt.Errorf("the path of a socket has %d bytes, the limit is %d: %s", len(path), MaxUnixPathBytes, path)
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	// The socket is made with no permissions at all and gets its own before anybody is accepted: between the two nobody can
	// connect who may not.
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return restrict(raw) }}
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// restrict gives a socket that has no name yet the permissions that its file is to be born with.
func restrict(raw syscall.RawConn) error {
	var failure error
	if err := raw.Control(func(fd uintptr) { failure = syscall.Fchmod(int(fd), 0) }); err != nil {
		return err
	}
	return failure
}

// removeStale removes a socket that nobody listens on.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and no socket", path)
	}
	conn, err := (&net.Dialer{Timeout: lookTimeout}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("%s: another process listens on it", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default:
		return fmt.Errorf("looking whether somebody listens: %w", err)
	}
}
