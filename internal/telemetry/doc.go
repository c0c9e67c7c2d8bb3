// SPDX-License-Identifier: Apache-2.0

// Package telemetry is what Prometheus sees of HashRings. Names begin with ringwright_hashring_.
//
// What happens is counted as the controller tells it: publications, their latency, what they moved, restores, and how long
// consumers take to have them. What is, such as sizes, backends, consumers, holds and readiness, is read from the status of the
// HashRings at each scrape, so that nothing is left of a HashRing that is gone.
//
// Guarantees:
//
//   - Only the replica that leads serves them, so that a sum over replicas counts each ring once.
//   - At most 27 series for each HashRing, two for each of 65 datacenters of its consumers, and a fixed number besides.
//   - A scrape asks the API server for nothing, and copies no spec.
package telemetry
