// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
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
	leads := &leadership{lock: l}
	expect := func(what string, last, want int64, wantErr error, reads int) {
		t.Helper()
		l.reads = 0
		if got, err := leads.Epoch(t.Context(), last); got != want || !errors.Is(err, wantErr) || l.reads != reads {
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
	expect("deposed", 11, 0, ErrDeposed, 1)
	expect("still", 11, 0, ErrDeposed, 1)
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
