// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/internal/shard"
)

// Announcer answers Replicas.Watch from a board.
type Announcer struct {
	Board *Board
	// Done ends all calls once it is closed, if it is set.
	Done <-chan struct{}
}

// Watch sends what there is, and then what comes, until the call or the announcer ends.
func (a *Announcer) Watch(stream grpc.ServerStreamingServer[balancerv1.WatchResponse]) error {
	watcher := a.Board.Watch()
	defer watcher.Close()
	for synced := false; ; synced = true {
		for _, announcement := range watcher.Take() {
			if err := stream.Send(messageOf(announcement)); err != nil {
				return err
			}
		}
		if !synced {
			if err := stream.Send(&balancerv1.WatchResponse{Synced: true}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-a.Done:
			return nil
		case <-watcher.Ready:
		}
	}
}

func messageOf(a Announcement) *balancerv1.WatchResponse {
	m := &balancerv1.WatchResponse{Policy: a.Policy, Epoch: a.Epoch, Version: a.Version, Weights: make([]*balancerv1.Weight, 0, len(a.Weights))}
	for _, id := range a.Weights.ids() {
		m.Weights = append(m.Weights, &balancerv1.Weight{Id: id, Weight: a.Weights[id]})
	}
	return m
}

func announcementOf(m *balancerv1.WatchResponse) Announcement {
	a := Announcement{Policy: m.GetPolicy(), Epoch: m.GetEpoch(), Version: m.GetVersion(), Weights: make(Served, len(m.GetWeights()))}
	for _, w := range m.GetWeights() {
		a.Weights[w.GetId()] = max(w.GetWeight(), 1)
	}
	return a
}

// Members knows the replicas that own policies.
type Members interface{ Members() []shard.Member }

// Follower hears what the other owners announce, and puts it on the board of this replica.
type Follower struct {
	Members Members
	// Self is the name of this replica, which it does not follow.
	Self string
	// Conn returns the connection to a replica.
	Conn  func(address string) (*grpc.ClientConn, error)
	Board *Board
	// Check is how often the members are looked at, 1s by default.
	Check time.Duration
}

// NeedLeaderElection says that every replica follows.
func (f *Follower) NeedLeaderElection() bool { return false }

// Start follows the live owners until ctx is done.
func (f *Follower) Start(ctx context.Context) error {
	following := map[shard.Member]context.CancelFunc{}
	var done sync.WaitGroup
	check := max(f.Check, 0)
	if check == 0 {
		check = time.Second
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		live := map[shard.Member]bool{}
		for _, m := range f.Members.Members() {
			if m.Name == f.Self {
				continue
			}
			live[m] = true
			if following[m] == nil {
				memberCtx, cancel := context.WithCancel(ctx)
				following[m] = cancel
				done.Go(func() { f.follow(memberCtx, m) })
			}
		}
		for m, cancel := range following {
			if !live[m] {
				cancel()
				delete(following, m)
			}
		}
	}, check)
	for _, cancel := range following {
		cancel()
	}
	done.Wait()
	return nil
}

// follow hears one owner, again and again, until ctx is done.
func (f *Follower) follow(ctx context.Context, m shard.Member) {
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 5 * time.Second}
	delay := backoff
	for ctx.Err() == nil {
		heard, err := f.listen(ctx, m)
		if heard {
			delay = backoff
		}
		if ctx.Err() != nil {
			return
		}
		log.FromContext(ctx).V(1).Info("An owner cannot be heard", "replica", m.Name, "address", m.Address, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(delay.Step()):
		}
	}
}

// listen hears one owner until it ends, and says whether it said anything.
func (f *Follower) listen(ctx context.Context, m shard.Member) (heard bool, err error) {
	conn, err := f.Conn(m.Address)
	if err != nil {
		return false, fmt.Errorf("connecting to replica %s: %w", m.Name, err)
	}
	stream, err := balancerv1.NewReplicasClient(conn).Watch(ctx, &balancerv1.WatchRequest{}, grpc.MaxCallRecvMsgSize(64<<20))
	if err != nil {
		return false, err
	}
	for {
		message, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return heard, nil
		case err != nil:
			return heard, err
		}
		heard = true
		if !message.GetSynced() {
			f.Board.Put(announcementOf(message))
		}
	}
}
