// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"fmt"
	"runtime"
)

// Verify builds the ring again from its own backends and reports whether the result is the same, byte for byte. It is the
// check that Open leaves out because it costs as much as a build. Sections that this version does not know are taken as a
// difference.
func (r *Ring) Verify() error {
	defer runtime.KeepAlive(r)
	again, err := Build(r.Config())
	if err != nil {
		return fmt.Errorf("building the ring again: %w", err)
	}
	want := again.snapshot
	if r.encoding == EncodingRecipe {
		want = again.Recipe()
	}
	if bytes.Equal(want, r.snapshot) {
		return nil
	}
	if again.PointCount() != r.PointCount() {
		return fmt.Errorf("the backends of the snapshot give %d points, it has %d", again.PointCount(), r.PointCount())
	}
	at := 0
	for at < min(len(want), len(r.snapshot)) && want[at] == r.snapshot[at] {
		at++
	}
	return fmt.Errorf("the backends of the snapshot give other bytes from byte %d on", at)
}
