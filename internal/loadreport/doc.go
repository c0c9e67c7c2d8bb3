// SPDX-License-Identifier: Apache-2.0

// Package loadreport holds what is said about the load of endpoints: checked, bounded, and no longer than it is fresh.
package loadreport
