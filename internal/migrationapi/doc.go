// SPDX-License-Identifier: Apache-2.0

// Package migrationapi translates between RingMigration, the resource, and what package migration knows of it: its spec, and its state,
// which is kept in the status. What was written down and read again is the same state, to the microsecond. It is pure.
package migrationapi
