// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/ringwright/ringwright/internal/controller"
)

// leaseTimeout bounds each request for the Lease, as it does by default for a manager that makes its lock itself.
const leaseTimeout = 10 * time.Second

// leadership numbers those who hold a Lease: the epoch grows with each change of the holder. A replica that believes that it leads,
// and does not, has a lower one than its successor, and readers refuse what it writes.
type leadership struct {
	// lock is the elector's alone: whoever reads through it changes what it writes next.
	lock resourcelock.Interface
	// lease reads the same Lease.
	lease resourcelock.Interface

	mu    sync.Mutex
	epoch int64
	// raised are the epochs of the rings for which a higher one was published than the Lease counts.
	raised map[types.UID]int64
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
	identity := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	l := &leadership{}
	for _, lock := range []*resourcelock.Interface{&l.lock, &l.lease} {
		if *lock, err = resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, LeaderElectionID, identity, cfg, leaseTimeout); err != nil {
			return nil, fmt.Errorf("making the Lease's client: %w", err)
		}
	}
	return l, nil
}

// Epoch returns the epoch of this replica, which has been elected, for one ring; at least 1. Last is that of what is published for
// the ring. Where that is higher, the Lease tells whether another replica leads, which is [controller.ErrDeposed], or the Lease was lost and
// made anew, which counts from the start: then the epoch of this ring goes on from last. It reads the Lease the first time, and where
// last is higher.
func (l *leadership) Epoch(ctx context.Context, ring types.UID, last int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := max(l.epoch, l.raised[ring]); l.epoch > 0 && known >= last {
		return known, nil
	}
	record, _, err := l.lease.Get(ctx)
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the Lease: %w", err)
	case record.HolderIdentity != l.lease.Identity():
		return 0, fmt.Errorf("%w: the Lease %s is held by %q", controller.ErrDeposed, l.lease.Describe(), record.HolderIdentity)
	}
	l.epoch = max(l.epoch, int64(record.LeaderTransitions)+1)
	if l.epoch >= last {
		return l.epoch, nil
	}
	if l.raised == nil {
		l.raised = make(map[types.UID]int64)
	}
	l.raised[ring] = last
	if last < math.MaxInt64 {
		l.raised[ring]++
	}
	return l.raised[ring], nil
}

// leaseNamespace returns where the Lease lives: what is asked for, else the namespace that the operator runs in.
func leaseNamespace(o Options) string { return cmp.Or(o.LeaderElectionNamespace, o.PodNamespace) }
