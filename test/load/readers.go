// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/agentapi"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// readers answers for all consumers.
type readers struct {
	port int32

	mu     sync.Mutex
	status []byte
	// dead says which of the addresses do not answer.
	dead func(netip.Addr) bool
	// now and most are how many requests are and were on their way.
	now, most int
	// asked is how often each was asked since somebody looked.
	asked map[netip.Addr]int
}

func readerAddress(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)})
}

func startReaders() (*readers, func(), error) {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		return nil, nil, err
	}
	r := &readers{
		port: int32(netip.MustParseAddrPort(listener.Addr().String()).Port()), status: []byte("{}"),
		dead: func(netip.Addr) bool { return false }, asked: map[netip.Addr]int{},
	}
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // It ends with Close.
	return r, func() { _ = server.Close() }, nil
}

// ServeHTTP answers as an agent does.
func (r *readers) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	local, _ := request.Context().Value(http.LocalAddrContextKey).(net.Addr)
	address := netip.MustParseAddrPort(local.String()).Addr().Unmap()
	r.mu.Lock()
	r.now++
	r.most = max(r.most, r.now)
	r.asked[address]++
	body, dead := r.status, r.dead(address)
	r.mu.Unlock()
	if dead {
		<-request.Context().Done()
	}
	_ = pause(request.Context(), readerDelay)
	r.mu.Lock()
	r.now--
	r.mu.Unlock()
	_, _ = w.Write(body)
}

// look returns how many consumers were asked since the last look, and how often in all.
func (r *readers) look() (consumers, requests int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.asked {
		requests += n
	}
	consumers = len(r.asked)
	r.asked = map[netip.Addr]int{}
	return consumers, requests
}

// load has all consumers take what is published.
func (r *readers) load(ctx context.Context, l *load) error {
	cm := &corev1.ConfigMap{}
	if err := l.cluster.admin.Get(ctx, client.ObjectKey{Namespace: l.cluster.namespace, Name: plan.RoutingName(readRing)}, cm); err != nil {
		return err
	}
	file, err := routing.Parse([]byte(cm.Data[routing.FileName]))
	if err != nil {
		return err
	}
	status, err := json.Marshal(agentapi.Status{Ready: true, Datacenter: "load", Routing: &agentapi.Routing{
		Ring: file.Ring, UID: file.UID, Generation: file.Generation, LeaderEpoch: file.LeaderEpoch, Stable: agentapi.Ring{Digest: file.Stable.Digest},
	}})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
	return err
}
