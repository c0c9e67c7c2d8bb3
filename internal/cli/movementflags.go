// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// What is listed of a movement where no flag says how much.
const (
	defaultPairs    = 10
	defaultBackends = 20
)

// movementFlags say what is shown of what moves from one ring to another.
type movementFlags struct {
	features []string
	pairs    int
	backends int
	output   *formatFlag
	// past says that both rings have been published already.
	past bool
}

func (f *movementFlags) add(cmd *cobra.Command, featuresUsage string) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.features, "features", nil, featuresUsage)
	flags.IntVar(&f.pairs, "pairs", defaultPairs, "how many moves from one backend to another are listed, the largest first")
	flags.IntVar(&f.backends, "backends", defaultBackends, "how many backends the table lists, those that gain and lose the most, 0 for all")
	f.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
}

func (f *movementFlags) check(cmd *cobra.Command) error {
	switch {
	case f.pairs < 0:
		return usagef(cmd, "--pairs is %d, it must be at least 0", f.pairs)
	case f.backends < 0:
		return usagef(cmd, "--backends is %d, it must be at least 0", f.backends)
	}
	return nil
}

// print shows what moves and says whether anything does.
func (f *movementFlags) print(out io.Writer, before, after *planSide) (bool, error) {
	report, err := comparison{before: before, after: after, features: f.features, pairs: f.pairs}.report()
	if err != nil {
		return false, err
	}
	verdict := report.verdict()
	if f.past && report.Outcome == PlanUnchanged {
		verdict = "Nothing moves: the snapshots are the same."
	}
	return report.moves(), f.output.print(out, report, func(out io.Writer) { report.print(out, verdict, f.pairs, f.backends) })
}

// movementCode turns what a command found into its exit code, as that of kubectl diff.
func movementCode(moves bool, err error) error {
	switch {
	case err != nil:
		return &codeError{code: ExitPlanFailed, err: err}
	case moves:
		return &codeError{code: ExitMoves}
	}
	return nil
}
