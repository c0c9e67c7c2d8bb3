// SPDX-License-Identifier: Apache-2.0

// Package catalog is pure: what the catalog of all rings of a cluster says, how that is written into a ConfigMap, and which copies
// of it are taken and dropped. The same rings give the same bytes, whatever the order in which they are listed.
package catalog
