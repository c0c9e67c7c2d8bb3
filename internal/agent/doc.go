// SPDX-License-Identifier: Apache-2.0

// Package agent is the sidecar that answers lookups over HTTP from a mounted directory, for programs in any language.
//
//	GET /v1/lookup   who owns a key
//	GET /v1/status   which ring is loaded, and what went wrong last
//	GET /metrics     for Prometheus
//	GET /healthz     200 while the process serves
//	GET /readyz      200 once a ring is loaded, 503 before
//
// # Guarantees
//
//   - An answer is of one ring, whole; see package ringclient, which does the reading.
//   - Once ready, the agent stays ready: a later file that cannot be used leaves the last good ring in place.
//   - Errors are JSON objects that name the field, the value and the limit, with a status code that says whose fault it
//     is: 4xx the caller's, 503 no ring yet or no backend that may own the key.
//   - Every connection and request is bounded in time and size.
//
// # Not guaranteed
//
// There is no authentication and no TLS. The agent listens on loopback unless it is told otherwise; what it tells is the
// backends and the keys' owners, and it changes nothing.
package agent
