// SPDX-License-Identifier: Apache-2.0

// Package xds serves the weights of WeightPolicies to xDS clients, and takes their load reports.
//
// Listener, route, cluster and endpoints of a policy all have its name, "namespace/name": a gRPC client dials xds:///shop/checkout, and a cluster
// of an Envoy has the service name shop/checkout. What a client is given depends on its node: the zone of its locality chooses the
// LocalityRule, and its user agent the way that weights are written.
//
// Guarantees:
//   - What is served of a policy never goes back: a lower epoch or version is refused.
//   - A resource exists in memory while somebody watches it, once for all clients that are given the same, and is encoded once.
//   - Names that are unknown are no error: they are answered once they exist.
//   - Until Synced nobody is told that something does not exist: clients keep what they had before a restart.
//   - Load reports have bounds, and say nothing of endpoints that are not the policy's. Those that are refused are counted by reason.
//
// It does not authenticate: Options.Authorize may.
package xds
