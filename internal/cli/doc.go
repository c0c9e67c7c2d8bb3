// SPDX-License-Identifier: Apache-2.0

// Package cli is the kubectl plugin "kubectl hashring": it builds rings without a cluster, looks up keys, and inspects and
// verifies what is published.
//
// Input and output go through the streams that the caller gives, so the whole of it runs in a test. Errors go to the error
// stream as "error: …"; the exit codes are [ExitOK], [ExitFailure] and [ExitUsage]. The types that the commands print as
// JSON or YAML are exported and documented: fields are added to them, never renamed or removed.
package cli
