// SPDX-License-Identifier: Apache-2.0

// Package ring builds, encodes and searches consistent-hash rings.
//
// A [Ring] is the bytes of its snapshot and nothing else: [Build] produces those bytes from a [Config], [Open]
// accepts them from a file or a ConfigMap, and both are searched in place, without decoding the points.
//
// # Guarantees
//
//   - The same Config gives the same bytes on every architecture, in every Go version, whatever the order of its
//     backends. A change of placement is a new algorithm version, never an edit of an existing one.
//   - V1 places keys as NGINX's "hash … consistent" and pingora-ketama v1 do; V2 as pingora-ketama v2 does with the
//     same number of points for each unit of weight. V3 is ours. See [Version] for ties.
//   - Under V1 and V2 a [View] answers exactly as a ring built from its members alone would. V3 trims each declared view by
//     itself, so that no member has much more than its share.
//   - Open accepts exactly what Build writes. It never panics, and it allocates a small multiple of its input at most.
//   - A Ring and a View are immutable and safe for concurrent use.
//
// # Not guaranteed
//
// The package does not know which backends are healthy: callers pass over those that are not, with [View.Successors]
// or the skip function of [View.AppendOwners]. It is not safe against an adversary who chooses keys: CRC-32 is the
// hash of the field, not a keyed one.
//
// The package imports the standard library only.
package ring
