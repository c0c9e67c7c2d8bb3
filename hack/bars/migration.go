// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/controller"
)

const (
	// migrationLooks is how many looks at a migration are timed: two of them are beyond the 99th percentile.
	migrationLooks = 200
	// maxPlanLooks is how many looks the migration may take to come to a place.
	maxPlanLooks = 500
)

// migrationSite is a migration of three rings in 330 datacenters with four consumers of each ring, beside a cluster in memory, where
// whatever is asked for is published and acknowledged at once.
type migrationSite struct {
	*migrationCluster
	reconciler *controller.RingMigrationReconciler
	clock      *clocktesting.FakeClock
}

// newMigrationSite returns one that has come to a phase of its last step.
func newMigrationSite(until v1alpha1.StepPhase) (*migrationSite, error) {
	s := &migrationSite{migrationCluster: newMigrationCluster(), clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	s.reconciler = controller.NewRingMigrationReconciler(s, s, &events.FakeRecorder{}, s.clock)
	s.reconciler.Published, s.reconciler.Consumers = s.published, s.consumers
	for range maxPlanLooks {
		status := s.migration.Status
		if p := status.Position; p != nil && p.StageName == "world" && p.Step == 1 && status.StepPhase == until {
			return s, nil
		}
		if err := s.look(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the migration stays %+v", s.migration.Status.Summary)
}

// look reconciles once, ten seconds later.
func (s *migrationSite) look() error {
	s.clock.Step(10 * time.Second)
	_, err := s.reconciler.Reconcile(context.Background(), ctrl.Request{
		NamespacedName: types.NamespacedName{Namespace: s.migration.Namespace, Name: s.migration.Name},
	})
	return err
}

// migrationMilliseconds returns the processor time of a look at a migration that soaks, at the 99th percentile. The store in memory takes
// part of it, as the encoding of requests does with a real API server.
func migrationMilliseconds() (float64, error) {
	s, err := newMigrationSite(v1alpha1.StepSoaking)
	if err != nil {
		return 0, err
	}
	var took []time.Duration
	for range migrationLooks {
		before, err := processorTime()
		if err != nil {
			return 0, err
		}
		if err := s.look(); err != nil {
			return 0, err
		}
		after, err := processorTime()
		if err != nil {
			return 0, err
		}
		took = append(took, after-before)
	}
	if s.migration.Status.StepPhase != v1alpha1.StepSoaking || s.writes < migrationLooks {
		return 0, fmt.Errorf("it was %s after %d writes: not what was to be measured", s.migration.Status.StepPhase, s.writes)
	}
	slices.Sort(took)
	return float64(took[migrationLooks*99/100]) / float64(time.Millisecond), nil
}

// migrationStatusKiB returns the size of the status of such a migration.
func migrationStatusKiB() (float64, error) {
	s, err := newMigrationSite(v1alpha1.StepSoaking)
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(s.migration.Status)
	return float64(len(text)) / 1024, err
}

// migrationRoutingKiB returns the size of routing.json of one of its rings.
func migrationRoutingKiB() (float64, error) {
	s, err := newMigrationSite(v1alpha1.StepSoaking)
	if err != nil {
		return 0, err
	}
	text, err := s.files[s.rings[0].Name].Encode()
	return float64(len(text)) / 1024, err
}

// migrationIdleWrites returns the writes of a hundred looks while it awaits approval.
func migrationIdleWrites() (float64, error) {
	s, err := newMigrationSite(v1alpha1.StepAwaitingApproval)
	if err != nil {
		return 0, err
	}
	if err := s.look(); err != nil { // That it awaits approval is a hold, which is found by looking.
		return 0, err
	}
	before := s.writes
	for range 100 {
		if err := s.look(); err != nil {
			return 0, err
		}
	}
	return float64(s.writes - before), nil
}
