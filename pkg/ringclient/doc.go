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
//     never a mixture. While a migration runs, a state has two rings, and each key is answered by the one that the split
//     gives it to, the same on every reader. Lookups take no lock and do not allocate, [Client.Lookup] apart.
//   - Nothing is used before it is verified: routing.json parses, the snapshot, all chunks of it together, has the digest
//     that routing.json names, and [ring.OpenWith] accepts it. A recipe is built, and the result has its fingerprint.
//   - The last good ring stays in use whatever happens to the files. What went wrong is in [Stats], typed as a
//     [LoadError].
//   - A client never goes back: not to a lower leader epoch of a HashRing, nor to a lower generation of the same one; and it
//     never changes to a HashRing of another name than the first it loaded.
//   - A snapshot in a volume of kubelet is mapped, and takes no memory of the process beside what is kept for each backend.
//     One in a plain directory, which anybody can write to, is copied.
//   - All files of one load are of one moment of a kubelet volume: the "..data" link is followed once. Chunks that are
//     mounted as several volumes can be of different moments; the digest then keeps the ring before in use.
//   - After [Client.Close] no goroutine of the client runs.
//
// # Not guaranteed
//
// Of the health of backends a client knows what routing.json says and what the program reports, see [Client.ReportFailed]; it
// asks nobody. Epochs and generations are remembered for the life of a client only: a
// restarted program takes whatever the directory holds.
package ringclient
