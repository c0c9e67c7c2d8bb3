// SPDX-License-Identifier: Apache-2.0

// Package orcareport makes a Go server tell how loaded it is, in the form that Ringwright's balancer, Envoy and gRPC clients read: an
// OrcaLoadReport (https://github.com/cncf/xds, xds/data/orca/v3). It goes out in the trailers of gRPC calls, on the out-of-band stream of
// xds.service.orca.v3.OpenRcaService, or is pushed to the balancer.
//
// # Figures
//
//   - cpu_utilization: CPU time over what could have been used. With a CPU limit (cgroup v2, cpu.max) both are those of the container: 1 is all
//     of its limit, whatever else runs in it. Without one they are those of the process: 1 is GOMAXPROCS cores. An idle server has 0.000001, as
//     0 means "not reported" in this message. On systems without getrusage there is none.
//   - named_metrics["in_flight"]: the mean number of requests in flight, weighted by time. A stream is one request for as long as it is open.
//   - rps_fractional and eps: requests that ended, and those of them that failed, a second. See [IsError] and [IsHTTPError] for which failed.
//
// Each report covers the time since the one before on the same stream or push loop; those in trailers cover the last [Options.Window].
//
// # Guarantees
//
//   - Counting a request takes no allocation and no lock that all requests share.
//   - There is no goroutine but those that call [Reporter.Push] and that gRPC has for a stream.
//
// # Not guaranteed
//
// A client gets one report in the trailers of a call: do not use google.golang.org/grpc/orca.CallMetricsServerOption on the same server.
package orcareport
