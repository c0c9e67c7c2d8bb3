// SPDX-License-Identifier: Apache-2.0

// Package observe reads what backends come from, Services with their EndpointSlices and pods, into the plain values that
// package plan decides on. It reads from caches only and decides nothing.
package observe
