// SPDX-License-Identifier: Apache-2.0

// Package weighthistory is the form in which the weights of a WeightPolicy are recorded: the data of a ControllerRevision in the namespace
// of the policy, named by [Name], whose revision is the number of the record. The balancer writes records, kubectl hashring reads them, and
// a policy with the annotation ringwright.dev/pinned-weights serves one of them.
//
// Guarantees: what [Encode] accepts [Decode] gives back, the same record gives the same bytes, and 100,000 weights fit into one object of
// the API server. Decode reads no more than [MaxUnpackedBytes], whatever the data says.
//
// A record too large to hold the IDs of its endpoints holds a digest of each instead: ask [Record.Weight], not the map.
package weighthistory
