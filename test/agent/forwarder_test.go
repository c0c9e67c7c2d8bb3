// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"io"
	"net"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// forwarder passes connections on to a server, as long as it is up.
type forwarder struct {
	address, target string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
}

func newForwarder(target string) *forwarder {
	GinkgoHelper()
	f := &forwarder{address: "127.0.0.1:0", target: target, open: map[net.Conn]bool{}}
	f.up()
	DeferCleanup(f.down)
	return f
}

// up listens, on the same port every time.
func (f *forwarder) up() {
	GinkgoHelper()
	listener, err := net.Listen("tcp", f.address)
	Expect(err).NotTo(HaveOccurred())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listener, f.address = listener, listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go f.serve(conn)
		}
	}()
}

// cut resets all connections.
func (f *forwarder) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.open {
		_ = conn.Close()
	}
	clear(f.open)
}

// down refuses connections and resets those that there are.
func (f *forwarder) down() {
	f.mu.Lock()
	_ = f.listener.Close()
	f.mu.Unlock()
	f.cut()
}

func (f *forwarder) serve(front net.Conn) {
	defer front.Close()
	back, err := net.Dial("tcp", f.target)
	if err != nil {
		return
	}
	defer back.Close()
	f.mu.Lock()
	f.open[front], f.open[back] = true, true
	f.mu.Unlock()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{front, back}, {back, front}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}
