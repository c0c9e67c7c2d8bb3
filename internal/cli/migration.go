// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const migrationLong = `Plan, watch, explain and steer RingMigrations, which move the consumers of a HashRing
from the published ring to the candidate, by datacenter and share of the keys, and
back.

Only "approve", "reject", "pause", "resume", "rollback", "retry" and "skip" write to
the cluster: each creates a RingMigrationAction, which the operator answers. None of
them changes a spec, so that they do not fight with Git.`

const migrationExample = `  # What would a migration do?
  kubectl hashring migration plan -f migration.yaml --rate 2000 --hit-ratio 95%

  # Where is it, and why does it not go on?
  kubectl hashring migration status v1-to-v3 -n cdn
  kubectl hashring migration explain v1-to-v3 -n cdn

  # Take everything back, at once
  kubectl hashring migration rollback v1-to-v3 -n cdn --reason "errors in ams01"`

func newMigrationCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "migration",
		Aliases: []string{"rmig"},
		Short:   "Plan, watch, explain and steer the migration of a ring",
		Long:    migrationLong,
		Example: migrationExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usagef(cmd, "unknown command %q", args[0])
		},
	}
	cmd.AddCommand(
		newMigrationPlanCommand(streams),
		newMigrationLintCommand(streams),
		newMigrationStatusCommand(streams),
		newMigrationExplainCommand(streams),
		newMigrationHistoryCommand(streams),
		newMigrationWaitCommand(streams),
		newMigrationTraceCommand(streams),
	)
	for _, a := range migrationActions {
		cmd.AddCommand(newMigrationActionCommand(streams, a))
	}
	return cmd
}

// oneMigration refuses all arguments but one, the name of a RingMigration.
func oneMigration(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return usagef(cmd, "no migration given: name a RingMigration")
	case len(args) > 1:
		return usagef(cmd, "unexpected argument %q", args[1])
	}
	return nil
}
