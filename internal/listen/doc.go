// SPDX-License-Identifier: Apache-2.0

// Package listen opens listeners that are bounded: each serves a limited number of connections at a time and refuses the
// others politely, with few of them at once.
//
// # Guarantees
//
//   - A [Listener] never has more than Limits.Connections accepted connections at a time, and [MaxRefusals] more that are being
//     refused. Others wait in the backlog of the kernel, which is bounded as well.
//   - A refusal ends within [RefusalTimeout] after the peer was told, and telling it is bounded too, whatever the peer does.
//   - [Unix] replaces the socket of a process that is gone, and never one that somebody listens on or what is no socket.
package listen
