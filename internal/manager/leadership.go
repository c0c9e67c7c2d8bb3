// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseTimeout bounds each request for the Lease, as it does by default for a manager that makes its lock itself.
const leaseTimeout = 10 * time.Second

// ErrDeposed says that another replica leads.
var ErrDeposed = errors.New("another replica leads")

// leadership numbers those who hold a Lease: the epoch grows with each change of the holder. A replica that believes that it leads,
// and does not, has a lower one than its successor, and readers refuse what it writes.
type leadership struct {
	lock resourcelock.Interface

	mu    sync.Mutex
	epoch int64
}

// newLeadership returns the leadership of the Lease in a namespace, which the caller gives to the manager to be elected by.
func newLeadership(cfg *rest.Config, namespace string) (*leadership, error) {
	if namespace == "" {
		return nil, errors.New("--leader-elect: the namespace of the Lease is unknown: neither --leader-election-namespace nor POD_NAMESPACE nor a service account says")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this replica: %w", err)
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, LeaderElectionID,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, cfg, leaseTimeout)
	if err != nil {
		return nil, fmt.Errorf("making the Lease's client: %w", err)
	}
	return &leadership{lock: lock}, nil
}

// Epoch returns the epoch of this replica, which has been elected; at least 1. Last is that of what is published. Where that is
// higher, the Lease tells whether another replica leads, which is [ErrDeposed], or the Lease was lost and made anew, which
// counts from the start: then the epoch goes on from last. It reads the Lease the first time, and where last is higher.
func (l *leadership) Epoch(ctx context.Context, last int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch > 0 && l.epoch >= last {
		return l.epoch, nil
	}
	record, _, err := l.lock.Get(ctx)
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the Lease: %w", err)
	case record.HolderIdentity != l.lock.Identity():
		return 0, fmt.Errorf("%w: the Lease %s is held by %q", ErrDeposed, l.lock.Describe(), record.HolderIdentity)
	}
	l.epoch = max(l.epoch, int64(record.LeaderTransitions)+1)
	if l.epoch < last {
		l.epoch = last + 1
	}
	return l.epoch, nil
}

// leaseNamespace returns where the Lease lives: what is asked for, else the namespace that the operator runs in.
func leaseNamespace(o Options) string { return cmp.Or(o.LeaderElectionNamespace, o.PodNamespace) }
