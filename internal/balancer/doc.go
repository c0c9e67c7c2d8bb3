// SPDX-License-Identifier: Apache-2.0

// Package balancer puts the balancer together: the gateway that takes load reports, the owner of policies that computes weights, and the xDS
// server that hands them out, each of them where a replica has its role. The program in cmd/balancer and the tests start the same one.
package balancer
