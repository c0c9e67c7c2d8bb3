// SPDX-License-Identifier: Apache-2.0

// Package shard divides the policies of a balancer between its replicas.
//
// Each owner holds a Lease of its own and renews it; the live ones make a consistent-hash ring, by pkg/ring, and a policy is owned by the
// replica that its name falls to. Replicas that see the same Leases agree, and one that comes or goes moves its own part only.
//
// They do not agree while a change is on its way, and a replica that was stopped for a while can believe that it still owns what
// another has taken over. What keeps the older one from doing harm is not here: it is the epoch in the WeightSets, which each takeover
// raises. Here a replica that could not renew its Lease gives up before the others may count it as gone.
package shard
