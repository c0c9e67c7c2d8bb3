// SPDX-License-Identifier: Apache-2.0

// Package sim simulates servers of several speeds behind clients that pick by weight, with the controller of package balance
// in the loop, and everything that can go wrong with reports and servers.
//
// It works in steps of a second, with the number of requests that each server gets and the work that they are drawn from
// their distributions; it does not follow single requests. The same scenario and seed give the same run.
package sim
