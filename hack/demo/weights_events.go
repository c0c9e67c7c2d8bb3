// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const (
	// The servers to which something happens: one of the fastest, and one of those in the middle.
	degradedServer, killedServer = 9, 4
	// firstLook is how long it is measured what a change does before anything follows it.
	firstLook = 3 * time.Second
	// noticed is how soon all clients have to see that a server has died: a request that begins later has to go elsewhere.
	noticed = 500 * time.Millisecond
)

// showEqual sends requests as clients without a policy do.
func (w *weightsDemo) showEqual(ctx context.Context) error {
	say(fmt.Sprintf("%d clients send %d requests a second, to each server as many as to any other", shopClients, shopRate))
	conns, err := w.dialEqual()
	if err != nil {
		return err
	}
	w.traffic.use(conns)
	w.traffic.begin(ctx)
	pause(ctx, time.Second) // They connect.
	before, err := w.meter.over(ctx, measuredWindow)
	if err != nil {
		return err
	}
	fmt.Println("  " + before.String())
	w.found.equal = before.maxOverAverage()
	if before.maxOverAverage() < unevenBound {
		return fmt.Errorf("%v; it should be more than %.2f", before, unevenBound)
	}
	return w.noFailures(0)
}

// applyPolicy has the clients ask the balancer.
func (w *weightsDemo) applyPolicy(ctx context.Context) error {
	say("kubectl apply -f policy.yaml, and clients dial xds:///" + shopNamespace + "/" + shopName)
	fmt.Print(shopManifest)
	policy := &v1alpha1.WeightPolicy{}
	if err := yaml.UnmarshalStrict([]byte(shopManifest), policy); err != nil {
		return err
	}
	if err := w.api.Create(ctx, policy); err != nil {
		return err
	}
	// A pod that pushes before there is a policy is told so and tries again, up to a minute later: here they all begin with it.
	for _, s := range w.servers {
		s.report(ctx, "http://"+w.httpListen, w.tokenFile(s.name))
	}
	conns, err := w.dialXDS()
	if err != nil {
		return err
	}
	w.traffic.use(conns)
	if w.found.weighted, err = w.steady(ctx); err != nil {
		return err
	}
	if err := w.noFailures(0); err != nil {
		return err
	}
	return w.showStatus(ctx)
}

// settled waits until the load is even.
func (w *weightsDemo) settled(ctx context.Context) (maxOverAverage float64, err error) {
	after, took, err := w.meter.settle(ctx)
	if err != nil {
		return 0, err
	}
	fmt.Printf("  after %2.0f s, over the last %.0f s: %v (the bound is %.2f)\n", took.Seconds(), measuredWindow.Seconds(), after, evenBound)
	return after.maxOverAverage(), nil
}

// steady waits until the load is even, and fails where it is not in the window after that.
func (w *weightsDemo) steady(ctx context.Context) (maxOverAverage float64, err error) {
	if _, err := w.settled(ctx); err != nil {
		return 0, err
	}
	after, err := w.meter.over(ctx, measuredWindow)
	if err != nil {
		return 0, err
	}
	fmt.Printf("  over the next %.0f s: %v (the bound is %.2f)\n", measuredWindow.Seconds(), after, steadyBound)
	return after.maxOverAverage(), after.stays()
}

// degradeOne halves the speed of a server.
func (w *weightsDemo) degradeOne(ctx context.Context) error {
	s := w.servers[degradedServer]
	say(s.name + " is degraded: it has half its speed from now on")
	s.setSpeed(speeds[degradedServer] / 2)
	first, err := w.meter.over(ctx, firstLook)
	if err != nil {
		return err
	}
	fmt.Printf("  over the first %.0f s: %v\n", firstLook.Seconds(), first)
	w.found.degraded = first.maxOverAverage()
	if w.found.recovered, err = w.steady(ctx); err != nil {
		return err
	}
	return w.noFailures(0)
}

// killOne ends a server without a warning, and then takes its EndpointSlice away.
func (w *weightsDemo) killOne(ctx context.Context) (err error) {
	s := w.servers[killedServer]
	say(s.name + " is killed, and its EndpointSlice is removed")
	before, killed := w.traffic.count(), time.Now()
	if err := s.stop(); err != nil {
		return err
	}
	if err := w.delist(ctx, s); err != nil {
		return err
	}
	if w.found.killed, err = w.settled(ctx); err != nil {
		return err
	}
	failed := w.traffic.failures()[before:]
	for _, f := range failed {
		if late := f.began.Sub(killed); late > noticed {
			return fmt.Errorf("a request that began %v after the server was killed failed: %w", late, f.err)
		}
	}
	fmt.Printf("  %d requests failed that were at the server, or on their way to it; none that began more than %v after it died\n", len(failed), noticed)
	return nil
}

// restartBalancer kills the balancer and starts it anew. Its clients keep the weights that they have, and it goes on with those that it stored.
func (w *weightsDemo) restartBalancer(ctx context.Context) error {
	say("The balancer is killed, and started again")
	policy, err := w.policy(ctx)
	if err != nil || policy.Status.Shard == nil {
		return errors.Join(errors.New("the policy has no holder"), err)
	}
	epoch := policy.Status.Shard.Epoch
	failed := w.traffic.count()
	from := w.meter.read()
	if err := w.balancer.kill(); err != nil {
		return err
	}
	pause(ctx, firstLook)
	without := w.meter.read()
	fmt.Printf("  over %.0f s without it: %v\n", without.at.Sub(from.at).Seconds(), without.since(from))
	if err := w.runBalancer(ctx); err != nil {
		return err
	}
	err = waitFor(ctx, "the balancer to take the policy over", func(ctx context.Context) error {
		policy, err := w.policy(ctx)
		if err == nil && policy.Status.Shard.Epoch <= epoch {
			err = fmt.Errorf("its epoch is %d still", epoch)
		}
		return err
	})
	if err != nil {
		return err
	}
	pause(ctx, measuredWindow)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	now := w.meter.read()
	all := now.since(from)
	fmt.Printf("  over %.0f s, from the kill until %.0f s after the new one has the policy: %v (the bound is %.2f)\n",
		now.at.Sub(from.at).Seconds(), measuredWindow.Seconds(), all, steadyBound)
	w.found.restarted = all.maxOverAverage()
	return errors.Join(all.stays(), w.noFailures(failed))
}

// noFailures fails where more requests have failed than had before.
func (w *weightsDemo) noFailures(before int) error {
	if failed := w.traffic.failures()[before:]; len(failed) > 0 {
		return fmt.Errorf("%d requests failed, the first with: %w", len(failed), failed[0].err)
	}
	return nil
}
