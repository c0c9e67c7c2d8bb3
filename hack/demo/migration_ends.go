// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// reportRollback says why the migration went back and how long that took, and that all keys are where they were.
func (m *migrationDemo) reportRollback(ctx context.Context) error {
	object, err := m.get(ctx)
	if err != nil {
		return err
	}
	back := object.Status.Rollback
	say("It has rolled back by itself: "+back.Cause, "  "+back.Detail)
	if back.Cause != "GateFailed" || len(back.Unreached) > 0 {
		return fmt.Errorf("it rolled back because of %s, without %v", back.Cause, back.Unreached)
	}
	began := m.mark()
	last, failed := time.Duration(0), 0
	for _, a := range m.traffic.between(mark{}, began) {
		if a.candidate {
			last = max(last, a.began.Sub(back.Since.Time))
		}
		if a.fault {
			failed++
		}
	}
	fmt.Printf("  The last request that the candidate answered began %.2f s after the decision; %d of %d had failed with 503, all in %s\n",
		last.Seconds(), failed, began.answers, brokenDatacenter)
	sets, err := m.sample(ctx)
	if err != nil {
		return err
	}
	for _, datacenter := range []string{firstDatacenter, brokenDatacenter} {
		if len(sets.candidate[datacenter]) > 0 || !maps.Equal(sets.owners[datacenter], m.initial.owners[datacenter]) {
			return fmt.Errorf("keys of %s are not where they were", datacenter)
		}
	}
	if err := m.waitPass(ctx, began); err != nil {
		return err
	}
	now := m.mark()
	for _, a := range m.traffic.between(began, now) {
		if a.fault || a.candidate {
			return fmt.Errorf("GET %s through %s failed, or was answered by the candidate, after the rollback", a.key, a.datacenter)
		}
	}
	fmt.Printf("  All keys are where they were, in caches that still have them: none of %d requests since has failed, though the origin is still away\n", now.answers-began.answers)
	m.present, m.shares, m.closed = sets, nil, now
	return nil
}

// waitPass waits until each key was asked for in each datacenter since a moment.
func (m *migrationDemo) waitPass(ctx context.Context, since mark) error {
	return waitFor(ctx, "each key to be asked for", func(context.Context) error {
		asked := map[fetch]bool{}
		for _, a := range m.traffic.between(since, m.mark()) {
			asked[fetch{datacenter: a.datacenter, key: a.key}] = true
		}
		if len(asked) < 2*servedKeys {
			return fmt.Errorf("%d of %d have been", len(asked), 2*servedKeys)
		}
		return m.traffic.broken()
	})
}

// finish shows that the candidate is the ring now, that the old one is gone, and how all of the requests went.
func (m *migrationDemo) finish(ctx context.Context) error {
	say(fmt.Sprintf("It has succeeded, %.0f s after it was created: the old ring is retired", time.Since(m.began).Seconds()))
	if m.last != nil {
		m.last.showGates()
	}
	err := waitFor(ctx, "the lock to be released", func(ctx context.Context) error {
		if err := m.readRing(ctx); err != nil {
			return err
		}
		if s := m.ring.Status; s.Migration != nil || s.Candidate != nil || s.Active == nil || s.Active.Digest != m.candidate {
			return fmt.Errorf("HashRing %s still has it, or another ring than %s", migratedRing, m.candidate)
		}
		return m.checkRings(ctx, m.candidate, "", nil)
	})
	if err != nil {
		return err
	}
	if err := m.checkSlots(ctx); err != nil {
		return err
	}
	if m.memory[2], err = m.measureMemory(ctx); err != nil {
		return err
	}
	fmt.Printf("  All agents have %s alone, and the slot of the old ring is empty\n", short(m.candidate))
	if err := m.reportMemory(); err != nil {
		return err
	}
	if err := m.waitPass(ctx, m.mark()); err != nil {
		return err
	}
	m.traffic.end()
	return m.reportRequests()
}

// checkSlots wants one slot to have the ring, byte for byte, and the other one to be empty.
func (m *migrationDemo) checkSlots(ctx context.Context) error {
	digests := map[string]bool{}
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		cm := &corev1.ConfigMap{}
		if err := m.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: plan.SlotName(migratedRing, slot)}, cm); err != nil {
			return err
		}
		for _, content := range cm.BinaryData {
			if bytes.Equal(content, ring.EmptySlot()) {
				digests[""] = true
			} else {
				digests[fmt.Sprintf("sha256:%x", sha256.Sum256(content))] = true
			}
		}
	}
	if !maps.Equal(digests, map[string]bool{"": true, m.candidate: true}) {
		return fmt.Errorf("the slots have %v, not %s and nothing", digests, m.candidate)
	}
	return nil
}

// reportRequests says how all requests went.
func (m *migrationDemo) reportRequests() error {
	if err := m.traffic.broken(); err != nil {
		return err
	}
	final := m.mark()
	failovers := 0
	for _, a := range m.traffic.between(mark{}, final) {
		if a.failover {
			failovers++
		}
	}
	want := 2 * servedKeys
	for _, datacenter := range []string{firstDatacenter, brokenDatacenter} {
		want += served(movedOwners(m.initial.owners[datacenter], m.present.owners[datacenter]))
	}
	fetched, refused := m.origin.counts()
	fmt.Printf("  %d requests: %d failed, all of them because the origin was away; no other did\n", final.answers, m.traffic.faults)
	fmt.Printf("  %d requests to the origin in all: each of %d objects once in each of 2 datacenters, and %d again because they moved\n", fetched, servedKeys, want-2*servedKeys)
	switch {
	case m.traffic.faults != refused || refused == 0:
		return fmt.Errorf("%d requests failed, and the origin was asked %d times in vain", m.traffic.faults, refused)
	case fetched < want || fetched > want+failovers:
		return fmt.Errorf("%d requests went to the origin, not %d", fetched, want)
	}
	return nil
}

// memory is what an agent has: the bytes of its rings, and what the system counts as resident, which 0 says is not known.
type memory struct{ held, resident int64 }

// measureMemory returns the mean of the agents.
func (m *migrationDemo) measureMemory(ctx context.Context) (memory, error) {
	var sum memory
	for _, a := range m.agents {
		said, err := a.ask(ctx)
		if err != nil {
			return sum, err
		}
		sum.held += said.Counters.BytesHeld
		sum.resident += resident(a.pid)
	}
	n := int64(len(m.agents))
	return memory{sum.held / n, sum.resident / n}, nil
}

func (m *migrationDemo) reportMemory() error {
	for i, when := range []string{"with the old ring", "with both rings", "with the new ring"} {
		fmt.Printf("  An agent %-18s holds %7d bytes of rings, %5.1f MiB resident\n", when, m.memory[i].held, float64(m.memory[i].resident)/(1<<20))
	}
	if before, both, after := m.memory[0].held, m.memory[1].held, m.memory[2].held; both <= before || after >= before {
		return fmt.Errorf("the rings take %d, then %d, then %d bytes: they have to grow, and then to be fewer than before", before, both, after)
	}
	return nil
}
