// SPDX-License-Identifier: Apache-2.0

// Package loadsource asks for the load of endpoints: the endpoints themselves by ORCA, a Prometheus, or the API metrics.k8s.io.
//
// What it guarantees:
//
//   - it connects to the IP addresses of the endpoints, and to the address of the Prometheus, and to none of this host or link;
//   - a source has one goroutine, that of ORCA one an endpoint, and there are never more ORCA streams than [Streams] has room for;
//   - what an endpoint, a Prometheus or the API sends has a limit in bytes, and what cannot be true is not reported but told by a message;
//   - messages name no more than a few endpoints, in the order of their names, and have at most [MaxMessageBytes] bytes.
package loadsource
