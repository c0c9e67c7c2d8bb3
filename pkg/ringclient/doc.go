// SPDX-License-Identifier: Apache-2.0

// Package ringclient reads a published ring from a mounted directory and answers lookups from it.
//
// The directory is one that kubelet writes for a ConfigMap or projected volume, or a plain one that
// "kubectl hashring build" wrote: routing.json and the snapshots that it names. [Open] loads them, watches the directory
// and swaps to a newer ring when one is there, complete and verified.
//
// # Guarantees
//
//   - A lookup is answered from one verified [State] that never changes: the ring before a swap or the one after it,
//     never a mixture. Lookups take no lock, and the append-style ones do not allocate once a view is known.
//   - Nothing is used before it is verified: routing.json parses, the snapshot, all chunks of it together, has the digest
//     that routing.json names, and [ring.OpenWith] accepts it. A recipe is built, and the result has its fingerprint.
//   - The last good ring stays in use whatever happens to the files. What went wrong is in [Stats], typed as a
//     [LoadError].
//   - A client never goes back to a lower generation of a HashRing, and never changes to one of another name than the
//     first it loaded.
//   - All files of one load are of one moment of a kubelet volume: the "..data" link is followed once. Chunks that are
//     mounted as several volumes can be of different moments; the digest then keeps the ring before in use.
//   - After [Client.Close] no goroutine of the client runs.
//
// # Not guaranteed
//
// The client knows nothing about the health of backends. Generations are remembered for the life of a client only: a
// restarted program takes whatever the directory holds.
package ringclient
