// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/ringwright/ringwright/internal/proxy"
)

// TestNoFilesLeft: that the proxy has no more files is not the fault of backends.
func TestNoFilesLeft(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": backend(t, named("a")), "b": backend(t, named("b"))}, "a", "b")
	toA, toB := f.key("a"), f.key("b")
	f.get(toA) // The connection of the client is there from now on.
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	restore := func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }
	t.Cleanup(restore)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	a := f.get(toB)
	restore()
	if p := a.problem(t); a.status != 503 || a.header.Get("Retry-After") != "1" || f.value("errors_total", "reason", "local") != 1 {
		t.Errorf("%d %+v", a.status, p)
	}
	if f.value("passed_over_total") != 0 || f.value("attempts_total") != 2 {
		t.Error("the backend was blamed, or another tried")
	}
	if got := f.get(toB); got.body != "b" {
		t.Errorf("%+v", got)
	}
}

func TestLocalErrors(t *testing.T) {
	dial := func(e syscall.Errno) error { return fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: e}) }
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if !proxy.IsLocal(dial(e)) {
			t.Errorf("%v is not local", e)
		}
	}
	if !proxy.IsLocal(&net.DNSError{Err: "dial udp 10.0.0.10:53: socket: " + syscall.EMFILE.Error(), Name: "a"}) {
		t.Error("the resolver's is not local")
	}
	for _, err := range []error{dial(syscall.ECONNREFUSED), dial(syscall.EHOSTUNREACH), dial(syscall.ENETUNREACH), &net.DNSError{Err: "no such host"}} {
		if proxy.IsLocal(err) {
			t.Errorf("%v is local", err)
		}
	}
}
