// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const weightsLong = `See, explain and take back the weights of WeightPolicies, which balance the load of
a Service's endpoints or of a HashRing's backends.

Only "rollback" and "resume" write to the cluster: an annotation of a WeightPolicy,
never its spec, so that they do not fight with Git.`

const weightsExample = `  # All policies, and one with its endpoints
  kubectl hashring weights status -A
  kubectl hashring weights status checkout -n shop

  # Why does it not balance, and why has an endpoint the weight that it has?
  kubectl hashring weights explain checkout -n shop
  kubectl hashring weights explain checkout checkout-7d4f-x2x9k -n shop

  # Serve the weights of an earlier time
  kubectl hashring weights rollback checkout -n shop`

func newWeightsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "weights",
		Aliases: []string{"wpol"},
		Short:   "See, explain and take back the weights that follow the load",
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
	cmd.AddCommand(newWeightsStatusCommand(streams))
	cmd.AddCommand(newWeightsExplainCommand(streams))
	cmd.AddCommand(newWeightsHistoryCommand(streams))
	cmd.AddCommand(newWeightsRollbackCommand(streams))
	cmd.AddCommand(newWeightsResumeCommand(streams))
	return cmd
}
