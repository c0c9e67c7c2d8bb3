// SPDX-License-Identifier: Apache-2.0

// Package weights is the owner of WeightPolicies: for each policy that its shard gives to this replica it measures the load every few
// seconds, has package balance compute the weights, and makes them known: at once to the other replicas, which serve them by xDS, and once a
// minute in WeightSets, from which a restart or another replica goes on.
//
// What is decided is decided by functions without a context: settings.go, rollout.go, serve.go, sets.go and verdict.go. The rest moves data.
//
// Guarantees: what a replica writes after another one has taken its policy over is refused by the API server, since the epoch of a WeightSet
// cannot fall; the weights that are served never jump at a restart or a change of the owner; and a policy that goes leaves its weights
// served until its tombstone is over.
package weights
