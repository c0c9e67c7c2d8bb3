// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// fieldManager is that of kubectl apply --server-side.
const fieldManager = "kubectl"

// servedWithin is how long the API server may take to serve a kind behind its CRD.
const servedWithin = 30 * time.Second

// Install applies the kustomization in dir as "kubectl apply --server-side -k" does, in its order, and leaves out the
// objects for which skip returns true; a nil skip leaves out none.
func (cp *ControlPlane) Install(ctx context.Context, dir string, skip func(*unstructured.Unstructured) bool) error {
	objects, err := Kustomize(dir)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if skip != nil && skip(object) {
			continue
		}
		if err := cp.Apply(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// Kustomize returns the objects of the kustomization in dir, in its order.
func Kustomize(dir string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // The kustomization says it.
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", dir, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return nil, fmt.Errorf("building %s: %w", dir, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Apply applies one object server-side, as an administrator with kubectl does; see [Apply].
func (cp *ControlPlane) Apply(ctx context.Context, object *unstructured.Unstructured) error {
	return Apply(ctx, cp.client, object)
}

// Apply applies one object server-side, as kubectl does. A kind that is not served yet is tried again: the API server needs a
// moment after a CRD.
func Apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, servedWithin, true, func(ctx context.Context) (bool, error) {
		configuration := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		last = c.Apply(ctx, configuration, client.FieldOwner(fieldManager), client.ForceOwnership)
		if meta.IsNoMatchError(last) || apierrors.IsNotFound(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil && last != nil {
		err = last
	}
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
