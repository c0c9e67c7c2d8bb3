// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const weightsLong = `Load-aware weights: what a controller that evens out load does.`

func newWeightsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "weights",
		Short: "Simulate load-aware weights",
		Long:  weightsLong,
		Args:  cobra.ArbitraryArgs,
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
