// SPDX-License-Identifier: Apache-2.0

// Package gateway takes load reports of pods, over HTTP and gRPC, and carries reports of every source to the replica that owns their policy.
package gateway
