// SPDX-License-Identifier: Apache-2.0

// Package proxy is the reverse proxy of the agent: it sends each request to the backend that owns its key, for programs that
// know nothing about rings.
//
// The work of a proxy is done by net/http/httputil.ReverseProxy and net/http.Transport. What this package adds is the key
// (Template), the way to a backend (endpoint), what is tried again and what is not (exchange, judge), and limits.
//
// # Guarantees
//
//   - It connects to addresses that the ring gave for the backend at hand, and to no other: whatever a request says.
//   - A request that may have reached a backend is sent again only if it is idempotent, and none is once a byte of an answer came.
//   - What a client gets is the whole answer of one backend, or it can see that it did not: a broken answer breaks its connection.
//   - Connections are not shared between backends, also where one gets the address that another had.
//   - Every step has a time limit, and connections, requests, headers and buffered bytes have a number.
//
// # Not guaranteed
//
// There is no authentication of clients and no TLS towards them: whoever can connect can send requests to the backends. On
// loopback that is the pod that it runs in; behind a Service it is whoever reaches that. An answer that a backend ends by closing
// an HTTP/1.0 connection has no length, so that nobody can see where it was cut off.
package proxy
