// SPDX-License-Identifier: Apache-2.0

// Package apisource keeps a directory equal to the ConfigMaps of a HashRing, for readers that cannot wait until kubelet has
// updated a mount.
//
// It watches each ConfigMap by its name, which is all that a Role with resourceNames allows, and writes the files into the
// directory as kubelet does, by package materialize: a reader opens the one as it opens the other. What it writes is always a
// whole set of one moment: routing.json and every file that it names, with the digests that it names. While there is no such
// set, the last one stays, whatever happens to the ConfigMaps or to the API server, and also over a restart of the process.
package apisource
