// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// TestLockFor: what each effect tells a HashRing. Taking the lock says what is published, whatever that is.
func TestLockFor(t *testing.T) {
	split := migration.Split{"lab": 500, "ams": 0}
	shares := []v1alpha1.DatacenterShare{{Datacenter: "ams"}, {Datacenter: "lab", BasisPoints: 500}}
	both := migration.Published{Stable: "old", Candidate: "new", Seed: 7, Split: split}
	alone := migration.Published{Stable: "new"}
	for name, row := range map[string]struct {
		phase     v1alpha1.MigrationPhase
		published migration.Published
		effect    migration.Effect
		want      *v1alpha1.RingLock
	}{
		"unlock":               {"", both, migration.Effect{Kind: migration.Unlock}, nil},
		"lock":                 {v1alpha1.MigrationQueued, alone, migration.Effect{Kind: migration.Lock}, &v1alpha1.RingLock{Phase: v1alpha1.LockLocked}},
		"lock of a split":      {v1alpha1.MigrationShifting, both, migration.Effect{Kind: migration.Lock}, &v1alpha1.RingLock{Phase: v1alpha1.LockSplit, Candidate: "new", Seed: 7, Split: shares}},
		"lock while retiring":  {v1alpha1.MigrationRetiring, alone, migration.Effect{Kind: migration.Lock}, &v1alpha1.RingLock{Phase: v1alpha1.LockPromoted, Candidate: "new"}},
		"lock before promoted": {v1alpha1.MigrationRetiring, both, migration.Effect{Kind: migration.Lock}, &v1alpha1.RingLock{Phase: v1alpha1.LockSplit, Candidate: "new", Seed: 7, Split: shares}},
		"publish":              {"", alone, migration.Effect{Kind: migration.Publish, Candidate: "new", Seed: 8, Split: split}, &v1alpha1.RingLock{Phase: v1alpha1.LockSplit, Candidate: "new", Seed: 8, Split: shares}},
		"withdraw":             {"", both, migration.Effect{Kind: migration.Withdraw}, &v1alpha1.RingLock{Phase: v1alpha1.LockLocked}},
		"promote":              {"", both, migration.Effect{Kind: migration.Promote, Candidate: "new"}, &v1alpha1.RingLock{Phase: v1alpha1.LockPromoted, Candidate: "new"}},
		"empty":                {"", alone, migration.Effect{Kind: migration.Empty}, &v1alpha1.RingLock{Phase: v1alpha1.LockRetired, Candidate: "held"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.RingMigration{ObjectMeta: metav1.ObjectMeta{Name: "move", UID: "u"}}
			m.Status.Phase, m.Status.Rings = row.phase, []v1alpha1.MigrationRing{{Name: "edge", Candidate: "new"}}
			ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
			ring.Status.Migration = &v1alpha1.RingLock{Candidate: "held"}
			if row.want != nil {
				row.want.Name, row.want.UID = "move", "u"
			}
			if diff := cmp.Diff(row.want, lockFor(m, ring, row.published, row.effect)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
