// SPDX-License-Identifier: Apache-2.0

// Package agent is the sidecar that answers lookups from a mounted directory, over HTTP and gRPC, for programs in any language.
// docs/agent.md describes it for its users.
//
//	GET  /v1/lookup     who owns a key
//	POST /v1/lookup     who owns each of several keys
//	GET  /v1/status     which ring is loaded, and what went wrong last
//	     /v1/override   break-glass: use one ring instead of the split
//	GET  /metrics       for Prometheus
//	GET  /healthz       200 while the process serves
//	GET  /readyz        200 once a ring is loaded, 503 before and while the agent drains
//
// # Guarantees
//
//   - An answer is of one state of the ring, whole, that of a batch too; see package ringclient, which does the reading.
//   - Once ready, the agent stays ready until it is asked to stop: a later file that cannot be used leaves the last good ring in place.
//   - Errors are JSON objects that name the field, the value and the limit, with a status code that says whose fault it
//     is: 4xx the caller's, 503 no ring yet, no backend that may own the key, or too many connections.
//   - Every listener, connection and request is bounded in number, time and size.
//   - The override is served to programs of the same pod only, and not to a browser among them.
//   - A request that was sent on an open connection before the agent stops is answered, unless it takes longer than the time for that.
//
// # Not guaranteed
//
// There is no authentication and no TLS. The agent listens on loopback unless it is told otherwise; what it tells is the
// backends and the keys' owners.
package agent
