// SPDX-License-Identifier: Apache-2.0

// Package plan decides, without touching the cluster, what to publish for a HashRing.
//
// It is pure: the same spec, observation and time give the same plan. It takes no context, client, logger or clock; the
// missing context is the visible sign of that. The operator and "kubectl hashring build" share it, so both arrive at the
// same bytes.
package plan
