// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func migrationNamed(name, ring string) *v1alpha1.RingMigration {
	return &v1alpha1.RingMigration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: name},
		Spec:       v1alpha1.RingMigrationSpec{RingRef: &v1alpha1.RingReference{Name: ring}},
	}
}

func selecting(name string, labels map[string]string) *v1alpha1.RingMigration {
	m := migrationNamed(name, "")
	m.Spec.RingRef, m.Spec.RingSelector = nil, &metav1.LabelSelector{MatchLabels: labels}
	return m
}

// TestMigrationNotFound: a name that is none says which ones there are.
func TestMigrationNotFound(t *testing.T) {
	ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "edge", Labels: map[string]string{"tier": "edge"}}}
	moved := selecting("by-status", map[string]string{"tier": "none"})
	moved.Status.Rings = []v1alpha1.MigrationRing{{Name: "edge"}}
	many := []client.Object{}
	for _, name := range []string{"a1", "b2", "c3", "d4", "e5", "f6", "g7", "h8", "i9", "j10", "k11", "l12"} {
		many = append(many, migrationNamed(name, "x"))
	}
	elsewhere := migrationNamed("edge", "x")
	elsewhere.Namespace = "web"
	for name, test := range map[string]struct {
		name    string
		objects []client.Object
		want    string
	}{
		"none":                 {"v1-to-v3", []client.Object{elsewhere}, "RingMigration cdn/v1-to-v3 does not exist: there is none in namespace cdn"},
		"a slip":               {"v1-to-v2", []client.Object{migrationNamed("v1-to-v3", "x"), migrationNamed("other", "x")}, "does not exist: did you mean v1-to-v3?"},
		"others":               {"zzzz", []client.Object{migrationNamed("b", "x"), migrationNamed("a", "x")}, "does not exist: namespace cdn has a, b"},
		"many":                 {"zzzzzzzz", many, "does not exist: namespace cdn has a1, b2, c3, d4, e5, f6, g7, h8, i9, j10 and 2 others"},
		"a ring without any":   {"edge", []client.Object{ring, migrationNamed("m", "other")}, "does not exist: that is the name of a HashRing, which no RingMigration moves"},
		"a ring with one":      {"edge", []client.Object{ring, migrationNamed("m", "edge")}, "that is the name of a HashRing, which RingMigration m moves: name that"},
		"a ring with several":  {"edge", []client.Object{ring, migrationNamed("n", "edge"), migrationNamed("m", "edge")}, "which 2 RingMigrations move: name one of m, n"},
		"a ring by its labels": {"edge", []client.Object{ring, selecting("m", map[string]string{"tier": "edge"})}, "which RingMigration m moves: name that"},
		"a ring by the status": {"edge", []client.Object{ring, moved}, "which RingMigration by-status moves: name that"},
	} {
		t.Run(name, func(t *testing.T) {
			live := storeOf(t, interceptor.Funcs{}, test.objects...)
			live.name = test.name
			_, err := live.get(t.Context())
			wantError(t, err, test.want)
		})
	}
}

// TestMigrationCannotBeRead: no CRD, no permission, no server.
func TestMigrationCannotBeRead(t *testing.T) {
	noCRD := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Group: "ringwright.dev", Resource: "ringmigrations"}, "v1-to-v3", "404 page not found", 0, true)
	for want, failure := range map[string]error{
		"this cluster has no RingMigrations: their CustomResourceDefinition (ringmigrations.ringwright.dev, in config/crd) is not installed": noCRD,
		"reading RingMigration cdn/v1-to-v3: connection refused":                                                                             errors.New("connection refused"),
	} {
		live := storeOf(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return failure
		}})
		_, err := live.get(t.Context())
		wantError(t, err, want)
	}
	live := storeOf(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("forbidden")
	}})
	if _, err := live.get(t.Context()); err == nil || err.Error() != "RingMigration cdn/v1-to-v3 does not exist" {
		t.Errorf("without permission to list: %v", err)
	}
}

func TestEditDistance(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"v1-to-v3", "v1-to-v3", 0}, {"ab", "ba", 2}} {
		if got := editDistance(row.a, row.b); got != row.want {
			t.Errorf("%q, %q: %d, want %d", row.a, row.b, got, row.want)
		}
	}
}
