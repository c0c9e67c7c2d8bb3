// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/crdschema"
)

// migrationManifests returns the RingMigrations of a file, those of a name where one is given. There is at least one.
func migrationManifests(file, name string, in io.Reader) ([]*unstructured.Unstructured, error) {
	data, err := readManifest(file, in)
	if err != nil {
		return nil, err
	}
	objects, err := parseManifest(file, data)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	var names, others []string
	for _, object := range objects {
		switch {
		case object.GroupVersionKind().Group != v1alpha1.GroupName || object.GetKind() != migrationKind:
			others = append(others, object.GetKind())
		case name == "" || object.GetName() == name:
			found = append(found, object)
			fallthrough
		default:
			names = append(names, object.GetName())
		}
	}
	slices.Sort(others)
	switch {
	case len(found) > 0:
		return found, nil
	case len(names) > 0:
		return nil, fmt.Errorf("%s has no %s of the name %q, only %s", file, migrationKind, name, strings.Join(names, ", "))
	case len(others) > 0:
		return nil, fmt.Errorf("%s has no %s, only %s", file, migrationKind, strings.Join(slices.Compact(others), ", "))
	}
	return nil, fmt.Errorf("%s is empty: a manifest of a %s is needed", file, migrationKind)
}

// admitMigration does to a manifest what the API server does at its creation. The error of one that it would refuse is a
// [crdschema.Rejection].
func admitMigration(ctx context.Context, object *unstructured.Unstructured, namespace string) (*v1alpha1.RingMigration, error) {
	if object.GetNamespace() == "" {
		object.SetNamespace(cmp.Or(namespace, "default"))
	}
	schema, err := crdschema.RingMigration()
	if err != nil {
		return nil, err
	}
	if err := schema.Admit(ctx, object); err != nil {
		return nil, err
	}
	migration := &v1alpha1.RingMigration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, migration); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", migrationKind, object.GetName(), err)
	}
	return migration, nil
}
