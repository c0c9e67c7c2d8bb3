// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// TestOfAnother: an action is of an earlier migration of the name where that owns it, or where it is older than the migration. What else
// owns it, such as the workflow that gave it, says nothing about that.
func TestOfAnother(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &v1alpha1.RingMigration{ObjectMeta: metav1.ObjectMeta{Name: "move", UID: "u", CreationTimestamp: metav1.NewTime(made)}}
	for name, row := range map[string]struct {
		owner *metav1.OwnerReference
		after time.Duration
		want  bool
	}{
		"new":                       {nil, 0, false},
		"old":                       {nil, -time.Second, true},
		"ours":                      {&metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RingMigration", UID: "u"}, 0, false},
		"of an earlier one":         {&metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RingMigration", UID: "v"}, 0, true},
		"of a workflow":             {&metav1.OwnerReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", UID: "w"}, 0, false},
		"of a workflow, and so old": {&metav1.OwnerReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", UID: "w"}, -time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := &v1alpha1.RingMigrationAction{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made.Add(row.after))}}
			if row.owner != nil {
				row.owner.Controller = ptr.To(true)
				a.OwnerReferences = []metav1.OwnerReference{*row.owner}
			}
			if got := ofAnother(a, m); got != row.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}

// TestIsBehind: a split that is told and not published yet. One without shares is as good as none.
func TestIsBehind(t *testing.T) {
	lab := []v1alpha1.DatacenterShare{{Datacenter: "lab", BasisPoints: 100}}
	for name, row := range map[string]struct {
		phase     v1alpha1.LockPhase
		told      []v1alpha1.DatacenterShare
		published migration.Split
		want      bool
	}{
		"the same":          {v1alpha1.LockSplit, lab, migration.Split{"lab": 100, "ams": 0}, false},
		"not published yet": {v1alpha1.LockSplit, lab, migration.Split{"lab": 0}, true},
		"lowered":           {v1alpha1.LockSplit, nil, migration.Split{"lab": 100}, true},
		"withdrawn":         {v1alpha1.LockSplit, []v1alpha1.DatacenterShare{{Datacenter: "lab"}}, nil, false},
		"no split is told":  {v1alpha1.LockLocked, nil, migration.Split{"lab": 100}, false},
	} {
		t.Run(name, func(t *testing.T) {
			lock := &v1alpha1.RingLock{Phase: row.phase, Split: row.told}
			if got := isBehind(lock, migration.Published{Split: row.published}); got != row.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}
