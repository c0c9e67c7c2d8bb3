// SPDX-License-Identifier: Apache-2.0

// Package readers holds the tests that the readers of the snapshot in other languages share: the files in testdata, which
// are written by Go and which each reader is held to on its own, and comparisons of all three on random input.
package readers
