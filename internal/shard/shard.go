// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The times of a Lease, as those of leader election: an owner that dies is replaced within LeaseDuration and a RenewInterval.
const (
	LeaseDuration = 15 * time.Second
	RenewInterval = 3 * time.Second

	// buriedAfter is after how many durations without renewal the Lease of another replica is deleted.
	buriedAfter = 20
)

// Options are where the Leases are and what this replica is.
type Options struct {
	// Client reads and writes Leases without a cache.
	Client client.Client
	// Namespace is that of the Leases.
	Namespace string
	// Self is this replica. Name is "" for one that owns nothing and only asks who owns.
	Self Member
	// LeaseDuration and RenewInterval are 0 for those above.
	LeaseDuration, RenewInterval time.Duration
	Clock                        clock.Clock
}

// Shards knows the replicas and which policy each of them owns. It works while [Shards.Start] runs, and is safe for concurrent use.
type Shards struct {
	o Options

	mu      sync.Mutex
	seen    map[string]sighting
	table   table
	renewed time.Time
	synced  bool
	changed []func()
}

// sighting is when the Lease of a member was last seen to change, by this replica's clock: those of others are not trusted.
type sighting struct {
	member   Member
	renewal  time.Time
	at       time.Time
	duration time.Duration
}

// New returns shards that know of nobody yet.
func New(o Options) *Shards {
	o.LeaseDuration, o.RenewInterval = cmp.Or(o.LeaseDuration, LeaseDuration), cmp.Or(o.RenewInterval, RenewInterval)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Shards{o: o, seen: map[string]sighting{}}
}

// OnChange has f called after each change of the owners. It must be called before Start.
func (s *Shards) OnChange(f func()) { s.changed = append(s.changed, f) }

// Owner returns the replica that owns a policy, false where none is known.
func (s *Shards) Owner(policy string) (Member, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.owner(policy)
}

// Owns says whether this replica owns a policy. It does not once its Lease may be over, which is earlier here than with the others.
func (s *Shards) Owns(policy string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Self.Name == "" || s.o.Clock.Since(s.renewed) > s.o.LeaseDuration*2/3 {
		return false
	}
	owner, ok := s.table.owner(policy)
	return ok && owner.Name == s.o.Self.Name
}

// Members returns the live replicas in the order of their names.
func (s *Shards) Members() []Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.sorted()
}

// Synced says whether the Leases have been read.
func (s *Shards) Synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Start renews the Lease and reads those of the others until ctx is done; then it gives its own up, so that the others need not wait.
func (s *Shards) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("shard")
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, s.o.LeaseDuration/3)
		defer cancel()
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			logger.Error(err, "The Leases of the balancer's replicas could not be kept")
		}
	}, s.o.RenewInterval, 0.1, false)
	return s.release()
}

// NeedLeaderElection says that every replica has a Lease, not the leader alone.
func (s *Shards) NeedLeaderElection() bool { return false }

// round renews and reads once.
func (s *Shards) round(ctx context.Context) error {
	renewErr := s.renew(ctx)
	leases := &coordinationv1.LeaseList{}
	if err := s.o.Client.List(ctx, leases, client.InNamespace(s.o.Namespace), client.MatchingLabels{labelRole: roleOwner}); err != nil {
		return errors.Join(renewErr, fmt.Errorf("listing the Leases in namespace %s: %w", s.o.Namespace, err))
	}
	return errors.Join(renewErr, s.observe(leases.Items), s.bury(ctx, leases.Items))
}

// bury deletes the Leases of replicas that died long ago and will not come back: a replica that starts takes each of them for a living one at first.
func (s *Shards) bury(ctx context.Context, leases []coordinationv1.Lease) error {
	if s.o.Self.Name == "" {
		return nil
	}
	now := s.o.Clock.Now()
	var errs []error
	for i := range leases {
		sighted, ok := sightingOf(&leases[i], now)
		if !ok || sighted.member.Name == s.o.Self.Name {
			continue
		}
		s.mu.Lock()
		at := s.seen[sighted.member.Name].at
		s.mu.Unlock()
		if at.IsZero() || now.Sub(at) < buriedAfter*sighted.duration {
			continue
		}
		unchanged := client.Preconditions{UID: &leases[i].UID, ResourceVersion: &leases[i].ResourceVersion}
		if err := s.o.Client.Delete(ctx, &leases[i], unchanged); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting Lease %s of a replica that is gone: %w", leases[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// observe takes the Leases in, and tells those who asked where the owners are others than before.
func (s *Shards) observe(leases []coordinationv1.Lease) error {
	now := s.o.Clock.Now()
	s.mu.Lock()
	present := map[string]bool{}
	for i := range leases {
		sighted, ok := sightingOf(&leases[i], now)
		if !ok {
			continue
		}
		present[sighted.member.Name] = true
		if before, known := s.seen[sighted.member.Name]; known && before.renewal.Equal(sighted.renewal) {
			sighted.at = before.at
		}
		s.seen[sighted.member.Name] = sighted
	}
	var live []Member
	for name, sighted := range s.seen {
		if !present[name] || now.Sub(sighted.at) > sighted.duration {
			if !present[name] {
				delete(s.seen, name)
			}
			continue
		}
		live = append(live, sighted.member)
	}
	slices.SortFunc(live, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	changed := !s.synced || !slices.Equal(live, s.table.sorted())
	var err error
	if changed {
		var next table
		if next, err = newTable(live); err == nil {
			s.table, s.synced = next, true
		}
	}
	s.mu.Unlock()
	if changed && err == nil {
		for _, f := range s.changed {
			f()
		}
	}
	return err
}
