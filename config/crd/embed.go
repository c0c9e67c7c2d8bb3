// SPDX-License-Identifier: Apache-2.0

// Package crd carries the generated CustomResourceDefinitions, so that a program can apply their schemas where there is
// no API server.
package crd

import "embed"

// Bases holds one file for each kind, bases/<group>_<plural>.yaml, as controller-gen writes them.
//
//go:embed bases/*.yaml
var Bases embed.FS
