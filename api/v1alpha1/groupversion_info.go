// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every resource of Ringwright.
const GroupName = "ringwright.dev"

var (
	// GroupVersion is the group and version of every type in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeGroupVersion is GroupVersion under the name that the generated apply configurations use.
	SchemeGroupVersion = GroupVersion

	// SchemeBuilder collects the functions that add the types of this package to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types of this package to a scheme. It can be called for one scheme more than once.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group-qualified name of a resource of this package, such as "hashrings".
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&HashRing{}, &HashRingList{}, &RingMigration{}, &RingMigrationList{}, &RingMigrationAction{}, &RingMigrationActionList{},
		&WeightPolicy{}, &WeightPolicyList{}, &WeightSet{}, &WeightSetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
