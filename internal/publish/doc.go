// SPDX-License-Identifier: Apache-2.0

// Package publish reads and writes the ConfigMaps in which a ring is published, and the ControllerRevisions, its records, that
// it can be built from again.
//
// Guarantees:
//
//   - A ConfigMap that somebody else made is never changed. A new one is claimed by an exclusive create before anything is
//     written into it.
//   - Writes are server-side applies under the field manager v1alpha1.FieldManager, guarded by the resourceVersion of what
//     was seen, so that of two writers the one that saw less fails with a conflict.
//   - A record is made whole by one exclusive create, and never changed but for its labels and annotations.
//   - Snapshots are written before the routing file that names them, and a chunk is deleted only after a routing file that
//     does not name it was seen.
//   - ConfigMaps and records are cached by label and without their payload, but for routing.json; digests of what was there are kept in its place, so that an
//     edit is seen although the bytes are not.
package publish
