// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/ringwright/ringwright/internal/balance/sim"
)

// drawSimulation writes a chart of a run.
func drawSimulation(out io.Writer, f format, r *sim.Run) error {
	_, _, _ = out, f, r
	return nil
}
