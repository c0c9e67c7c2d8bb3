// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the custom resources of the API group ringwright.dev, version v1alpha1.
//
// HashRing declares a consistent-hash ring: an algorithm, an identity and a list of backends. The operator builds
// the ring once, publishes its bytes as a snapshot in ConfigMaps, and reports what it published in the status.
//
// The package guarantees that every rule which a single object can show is part of the schema: list and string
// bounds, enums, and CEL rules whose messages name the field, what is wanted and what was found. It does not
// guarantee that an admitted object can be built: rules that need the hash of a backend, such as two backends with
// the same identity, are reported as conditions, so that an apply never fails for the order of its objects.
//
// The rules need Kubernetes 1.33 or later, which made CEL's comprehensions with two variables usable in a schema.
//
// The package imports apimachinery only, so that a program can use the types without a client library. The apply
// configurations beside it need k8s.io/client-go.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=ringwright.dev
package v1alpha1
