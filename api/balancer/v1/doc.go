// SPDX-License-Identifier: Apache-2.0

// Package balancerv1 is what a balancer answers over gRPC: to pods that report their load, and to the other replicas.
package balancerv1
