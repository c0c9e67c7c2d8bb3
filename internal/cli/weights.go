// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const weightsLong = `Load-aware weights: what a controller that evens out load does.`

const weightsExample = `  # What would a controller do for servers of three speeds?
  kubectl hashring weights simulate --chart weights.png`

func newWeightsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "weights",
		Short:   "Simulate load-aware weights",
		Long:    weightsLong,
		Example: weightsExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usagef(cmd, "unknown command %q", args[0])
		},
	}
	cmd.AddCommand(newWeightsSimulateCommand(streams))
	return cmd
}
