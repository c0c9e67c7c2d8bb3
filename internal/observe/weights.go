// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// slimWeightSet keeps the IDs and weights of the backends of a HashRing, and no endpoint of a Service: of a WeightSet of those only its frame
// is looked at, for the catalog.
func slimWeightSet(object any) (any, error) {
	set, ok := object.(*v1alpha1.WeightSet)
	if !ok {
		return object, nil
	}
	slimMeta(set)
	set.Annotations = nil
	if set.Labels[v1alpha1.LabelWeightRing] == "" {
		set.Endpoints = nil
		return set, nil
	}
	for i := range set.Endpoints {
		set.Endpoints[i] = v1alpha1.WeightedEndpoint{ID: set.Endpoints[i].ID, Weight: set.Endpoints[i].Weight}
	}
	return set, nil
}

// slimWeightPolicy keeps what the catalog says of a WeightPolicy.
func slimWeightPolicy(object any) (any, error) {
	if policy, ok := object.(*v1alpha1.WeightPolicy); ok {
		slimMeta(policy)
		policy.Labels, policy.Annotations = nil, nil
		policy.Spec = v1alpha1.WeightPolicySpec{TargetRef: policy.Spec.TargetRef}
	}
	return object, nil
}

// WeightSets returns those of a HashRing. They belong to the cache.
func (o Reader) WeightSets(ctx context.Context, r *v1alpha1.HashRing) ([]v1alpha1.WeightSet, error) {
	list := &v1alpha1.WeightSetList{}
	err := o.Client.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelWeightRing: r.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing WeightSets: %w", err)
	}
	return list.Items, nil
}
