// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const rootLong = `Size, build, plan, look up, inspect, verify and roll back the consistent-hash rings
of Ringwright.

The commands read a ring from a cluster, from a directory with the published
files (a mounted volume, or what "build" wrote), or from a snapshot file. Only
"rollback", "catalog restore", "release", "migration" and "weights" write to the
cluster: a field and an annotation of a HashRing, RingMigrationActions, and an
annotation of a WeightPolicy.

Exit codes: 0 success; 1 the command failed, or a check of "verify" did;
2 the command line is wrong. "plan" and "diff" have those of kubectl diff: 0 nothing
moves; 1 keys move; above 1 an error, which is 3 but for the command line.
"migration wait" has some of its own.`

const rootExample = `  # Build the ring of a manifest, without a cluster, as the operator would
  kubectl hashring build -f ring.yaml -o out

  # What would move if a manifest were applied?
  kubectl hashring plan -f ring.yaml

  # How many points does a ring of 2048 backends need?
  kubectl hashring size --backends 2048 --imbalance 5%

  # Which backend owns a key, and which ones are next?
  kubectl hashring lookup edge-cache -n cdn /images/logo.png --owners 3

  # How well is the ring balanced?
  kubectl hashring inspect edge-cache -n cdn

  # Is what is published what it should be?
  kubectl hashring verify edge-cache -n cdn

  # Which revisions are kept? Go back to the one before
  kubectl hashring history edge-cache -n cdn
  kubectl hashring rollback edge-cache -n cdn

  # Where is a migration to another algorithm, and what keeps it?
  kubectl hashring migration status v1-to-v3 -n cdn
  kubectl hashring migration explain v1-to-v3 -n cdn

  # Does the load follow the weights?
  kubectl hashring weights status -A`

// Main runs the command line and returns the exit code of the process.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := New(streams)
	root.SetArgs(append([]string{}, args...)) // Without any, nil would be taken for those of the process.
	return report(streams.ErrOut, root.ExecuteContext(ctx))
}

// New returns the root command.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-hashring",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl hashring"},
		Short:         "Size, build, plan, look up, inspect, verify and roll back consistent-hash rings",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usagef(cmd, "unknown command %q", args[0])
		},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef(cmd, "%v", err) })
	root.AddCommand(

		newSizeCommand(streams),
		newBuildCommand(streams),
		newPlanCommand(streams),
		newLookupCommand(streams),
		newInspectCommand(streams),
		newVerifyCommand(streams),
		newHistoryCommand(streams),
		newDiffCommand(streams),
		newRollbackCommand(streams),
		newReleaseCommand(streams),
		newCatalogCommand(streams),
		newMigrationCommand(streams),
		newWeightsCommand(streams),
		newVersionCommand(streams),
	)
	return root
}

// noArguments refuses positional arguments as a usage error.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(cmd, "unexpected argument %q: %s takes none", args[0], cmd.CommandPath())
	}
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
