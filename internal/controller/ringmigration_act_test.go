// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// latestVersion is an API server that knows one version of a RingMigration.
type latestVersion struct {
	client.Client
	uid     types.UID
	version string
	told    int
}

func (l *latestVersion) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetUID(l.uid)
	o.SetResourceVersion(l.version)
	return nil
}

func (l *latestVersion) Status() client.SubResourceWriter { return tellings{told: &l.told} }

// tellings counts what HashRings are told.
type tellings struct {
	client.SubResourceWriter
	told *int
}

func (t tellings) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	*t.told++
	return nil
}

// TestActsOnTheLatestOnly: an operator that no longer leads, or whose cache is behind, has a share in its hand that somebody has lowered
// since. It must not tell it.
func TestActsOnTheLatestOnly(t *testing.T) {
	for name, row := range map[string]struct {
		latest latestVersion
		told   int
	}{
		"the latest":                         {latestVersion{uid: "u", version: "7"}, 1},
		"somebody has stored since":          {latestVersion{uid: "u", version: "8"}, 0},
		"it has been deleted and made again": {latestVersion{uid: "v", version: "7"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRingMigrationReconciler(&row.latest, &row.latest, nil, nil)
			m := &v1alpha1.RingMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "move", UID: "u"}}
			seen := migrationSeen{rings: map[string]*v1alpha1.HashRing{"edge": {ObjectMeta: metav1.ObjectMeta{Name: "edge"}}}}
			err := r.act(t.Context(), m, "7", seen, []migration.Effect{{Kind: migration.Publish, Ring: "edge", Candidate: "new", Split: migration.Split{"ams": 10000}}})
			if row.latest.told != row.told || isConflict(err) != (row.told == 0) {
				t.Errorf("HashRings were told %d times, %v; want %d", row.latest.told, err, row.told)
			}
		})
	}
}
