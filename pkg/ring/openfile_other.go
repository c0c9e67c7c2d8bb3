// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package ring

import "os"

// mapFile reads a regular file where files are not mapped.
func mapFile(name string) (mapping, error) {
	info, err := os.Stat(name)
	if err != nil {
		return mapping{}, err
	}
	if !info.Mode().IsRegular() {
		return mapping{}, pathError(name, errNotRegular)
	}
	data, err := os.ReadFile(name)
	return mapping{data: data}, err
}

func (m mapping) release() {}
