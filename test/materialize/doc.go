// SPDX-License-Identifier: Apache-2.0

// Package materialize compares package internal/materialize with the writer that kubelet writes volumes with. It is a module
// of its own, so that nothing else depends on k8s.io/kubernetes.
package materialize
