// SPDX-License-Identifier: Apache-2.0

// Package loadsource asks for the load of endpoints: the endpoints themselves by ORCA, a Prometheus, or the API metrics.k8s.io.
package loadsource
