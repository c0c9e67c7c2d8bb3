// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/internal/controller"
)

// lease is a Lease as one replica sees it.
type lease struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	err    error
	reads  int
}

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.reads++
	return &l.record, nil, l.err
}

func (*lease) Identity() string { return "me" }

func (*lease) Describe() string { return "system/lease" }

func (l *lease) held(by string, transitions int) {
	l.record = resourcelock.LeaderElectionRecord{HolderIdentity: by, LeaderTransitions: transitions}
}

// TestEpoch follows one replica from its election to the day on which another one leads.
func TestEpoch(t *testing.T) {
	l := &lease{err: errors.New("no API server")}
	leads := &leadership{lease: l}
	expect := func(what string, last, want int64, wantErr error, reads int) {
		t.Helper()
		l.reads = 0
		if got, err := leads.Epoch(t.Context(), "a", last); got != want || !errors.Is(err, wantErr) || l.reads != reads {
			t.Errorf("%s: epoch %d, %v after %d reads; want %d, %v after %d", what, got, err, l.reads, want, wantErr, reads)
		}
	}
	expect("the Lease cannot be read", 0, 0, l.err, 1)
	l.err = nil
	l.held("me", 4)
	expect("elected", 3, 5, nil, 1)
	expect("it is remembered", 5, 5, nil, 0)
	l.held("me", 0)
	expect("the Lease was lost and made anew, and somebody led meanwhile", 9, 10, nil, 1)
	expect("that is remembered too", 10, 10, nil, 0)
	l.held("another", 1)
	expect("deposed, and not yet known", 10, 10, nil, 0)
	expect("deposed", 11, 0, controller.ErrDeposed, 1)
	expect("still", 11, 0, controller.ErrDeposed, 1)
}

// TestEpochOfOneRing: what somebody has written into the file of one ring does not reach another, and cannot run over.
func TestEpochOfOneRing(t *testing.T) {
	l := &lease{}
	l.held("me", 4)
	leads := &leadership{lease: l}
	for _, step := range []struct {
		ring       types.UID
		last, want int64
	}{{"a", math.MaxInt64 - 1, math.MaxInt64}, {"b", 5, 5}, {"a", math.MaxInt64, math.MaxInt64}, {"c", math.MaxInt64, math.MaxInt64}, {"b", 6, 7}, {"b", 7, 7}} {
		if got, err := leads.Epoch(t.Context(), step.ring, step.last); err != nil || got != step.want {
			t.Errorf("ring %s after %d: epoch %d, %v, want %d", step.ring, step.last, got, err, step.want)
		}
	}
}

// leaseServer is as much of an API server as an elector needs. It has one Lease.
type leaseServer struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
}

// hold writes the Lease as another replica does that finds none.
func (s *leaseServer) hold(by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := &metav1.MicroTime{Time: time.Now()}
	s.write(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &by, LeaseDurationSeconds: ptr.To[int32](60), LeaseTransitions: ptr.To[int32](0), RenewTime: now, AcquireTime: now,
	}})
}

func (s *leaseServer) write(lease *coordinationv1.Lease) {
	s.version++
	lease.Kind, lease.APIVersion, lease.ResourceVersion = "Lease", "coordination.k8s.io/v1", strconv.Itoa(s.version)
	lease.Name, lease.Namespace = LeaderElectionID, "system"
	s.lease = lease
}

func (s *leaseServer) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (s *leaseServer) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.lease.Spec.HolderIdentity
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	sent := &coordinationv1.Lease{}
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(sent)
	}
	refuse := func(code int, reason string) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}
	switch {
	case r.Method == http.MethodGet && s.lease == nil:
		refuse(http.StatusNotFound, "NotFound")
		return
	case r.Method == http.MethodPut && sent.ResourceVersion != s.lease.ResourceVersion:
		refuse(http.StatusConflict, "Conflict")
		return
	case r.Method != http.MethodGet:
		s.write(sent)
	}
	_ = json.NewEncoder(w).Encode(s.lease)
}

// TestDeposedDoesNotTakeTheLeaseBack: a replica that finds out by what is published that another one leads reads the Lease. That must not
// teach its elector the version that it needs to overwrite it.
func TestDeposedDoesNotTakeTheLeaseBack(t *testing.T) {
	api := &leaseServer{}
	server := httptest.NewServer(api)
	defer server.Close()
	leads, err := newLeadership(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "system")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan struct{})
	asked := make(chan error, 1)
	go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: leads.lock, LeaseDuration: 60 * time.Second, RenewDeadline: time.Second, RetryPeriod: 200 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{OnStoppedLeading: func() { close(stopped) }, OnStartedLeading: func(ctx context.Context) {
			if _, err := leads.Epoch(ctx, "a", 0); err != nil {
				asked <- err
				return
			}
			for api.writes() < 2 { // The next renewal is a moment away then.
				<-time.After(time.Millisecond)
			}
			api.hold("another")
			_, err := leads.Epoch(ctx, "a", 5)
			asked <- err
		}},
	})
	if err := <-asked; !errors.Is(err, controller.ErrDeposed) {
		t.Errorf("the deposed replica: %v", err)
	}
	select {
	case <-stopped:
	case <-time.After(5 * time.Second):
		t.Error("it still leads")
	}
	if got := api.holder(); got != "another" {
		t.Errorf("the Lease is held by %s", got)
	}
}

func TestNewLeadership(t *testing.T) {
	if _, err := newLeadership(&rest.Config{}, ""); err == nil {
		t.Error("a Lease in no namespace")
	}
	first, err := newLeadership(&rest.Config{Host: "127.0.0.1:1"}, "system")
	if err != nil {
		t.Fatal(err)
	}
	second, err := newLeadership(&rest.Config{Host: "127.0.0.1:1"}, "system")
	if err != nil {
		t.Fatal(err)
	}
	if first.lock.Identity() == second.lock.Identity() {
		t.Error("two replicas have one identity")
	}
	if got := leaseNamespace(Options{PodNamespace: "pod"}); got != "pod" {
		t.Errorf("the Lease is in %q", got)
	}
	if got := leaseNamespace(Options{PodNamespace: "pod", LeaderElectionNamespace: "asked"}); got != "asked" {
		t.Errorf("the Lease is in %q", got)
	}
}
