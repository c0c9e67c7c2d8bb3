// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const (
	maxReason     = 512
	maxToken      = 64
	answerTimeout = 30 * time.Second
)

// migrationAction is a command that creates a RingMigrationAction.
type migrationAction struct {
	verb string
	kind v1alpha1.ActionType
	// permission is the verb on ringmigrations that the API server asks for.
	permission string
	// confirmed says that it is for a step that its giver has to have seen, and that it is asked about.
	confirmed bool
	short     string
	does      string
	// next is what follows when it is accepted.
	next string
}

var migrationActions = []migrationAction{
	{
		verb: "approve", kind: v1alpha1.ActionApprove, permission: "approve", confirmed: true, short: "Let a step that awaits approval go on",
		does: "lets the step that awaits approval go on", next: "It goes on to the next step.",
	},
	{
		verb: "reject", kind: v1alpha1.ActionReject, permission: "approve", confirmed: true, short: "Roll back a step that awaits approval",
		does: "takes the whole migration back, because its step is not approved", next: "It rolls back.",
	},
	{
		verb: "pause", kind: v1alpha1.ActionPause, permission: "pause", short: "Stop advancing until resume",
		does: "stops the migration from advancing until \"resume\"; gates go on to protect what has moved", next: "It stays where it is until \"resume\".",
	},
	{
		verb: "resume", kind: v1alpha1.ActionResume, permission: "pause", short: "End a pause",
		does: "ends a pause; it does not end spec.suspend", next: "It goes on where nothing else holds it.",
	},
	{
		verb: "rollback", kind: v1alpha1.ActionRollback, permission: "rollback", short: "Take everything back to the stable ring",
		does: "takes all keys back to the stable ring, past every gate, hold and pause", next: "It rolls back.",
	},
	{
		verb: "retry", kind: v1alpha1.ActionRetry, permission: "retry", confirmed: true, short: "Begin another attempt after a rollback",
		does: "begins another attempt after a rollback, from the first step; the same keys move as before", next: "It begins again at the first step.",
	},
	{
		verb: "skip", kind: v1alpha1.ActionSkip, permission: "override", confirmed: true, short: "Skip what is left of the soak, the gates and the approval of a step",
		does: "skips what is left of the soak, the gates and the approval of the present step; never an acknowledgement", next: "It goes on to the next step.",
	},
}

func (a migrationAction) long() string {
	text := fmt.Sprintf("Create a RingMigrationAction that %s.\n\n", a.does)
	if a.confirmed {
		text += `It is for the step that the migration is at, by its token: the step is shown and asked
about, unless --yes is given. With --token it is for the step that was seen before,
and nothing is done when the migration is at another one by then.

`
	} else {
		text += `Nothing is asked. It also works where the status of the migration cannot be read.

`
	}
	return text + fmt.Sprintf(`The actor of the action is the user of the kubeconfig, as the API server knows it. The
command waits until the operator has answered; exit code 1 means that it rejected the
action, 4 that it did not answer within --timeout.

It takes permission to create RingMigrationActions and the verb %q on
ringmigrations; to wait, also to get and watch RingMigrationActions; to see the step,
to get RingMigrations.`, a.permission)
}

type migrationActionOptions struct {
	migrationAction
	streams  genericiooptions.IOStreams
	reason   string
	token    string
	yes      bool
	wait     bool
	dryRun   bool
	timeout  time.Duration
	terminal bool
	config   *genericclioptions.ConfigFlags
}

func newMigrationActionCommand(streams genericiooptions.IOStreams, a migrationAction) *cobra.Command {
	o := &migrationActionOptions{migrationAction: a, streams: streams, terminal: canAsk(streams)}
	example := fmt.Sprintf("  kubectl hashring migration %s v1-to-v3 -n cdn --reason \"as seen on the dashboard\"", a.verb)
	if a.confirmed {
		example += fmt.Sprintf("\n\n  # For the step that was seen, and no other\n  kubectl hashring migration %s v1-to-v3 -n cdn --token 1.2.1-7 --yes", a.verb)
	}
	cmd := &cobra.Command{
		Use: a.verb + " NAME", Short: a.short, Long: a.long(), Example: example, Args: oneMigration,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.reason, "reason", "", "why, for those who read the history; at most 512 characters")
	flags.StringVar(&o.token, "token", "", "token of the step that it is for (default: that of the present step)")
	if a.confirmed {
		flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	}
	flags.BoolVar(&o.wait, "wait", true, "wait until the operator has answered")
	flags.DurationVar(&o.timeout, "timeout", answerTimeout, "how long to wait for the answer")
	flags.BoolVar(&o.dryRun, "dry-run", false, "have the API server check the action, and create nothing")
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(cmd); err != nil {
			return err
		}
		live, err := newLiveMigration(o.config, args[0])
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), live)
	}
	return cmd
}

// canAsk says whether there is somebody who can be asked.
func canAsk(streams genericiooptions.IOStreams) bool {
	file, ok := streams.In.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (o *migrationActionOptions) check(cmd *cobra.Command) error {
	switch {
	case len([]rune(o.reason)) > maxReason:
		return usagef(cmd, "--reason has %d characters, the limit is %d", len([]rune(o.reason)), maxReason)
	case len(o.token) > maxToken:
		return usagef(cmd, "--token has %d characters, the limit is %d", len(o.token), maxToken)
	case cmd.Flags().Changed("token") && o.token == "":
		return usagef(cmd, "--token is empty: it must be the token of a step, as status shows it")
	case o.timeout <= 0:
		return usagef(cmd, "--timeout is %s, it must be more than 0", o.timeout)
	}
	return nil
}

func (o *migrationActionOptions) run(ctx context.Context, live liveMigration) error {
	step, err := o.stepOf(ctx, live)
	if err != nil {
		return err
	}
	if o.confirmed && !o.yes && !o.dryRun {
		if err := o.confirm(live, step); err != nil {
			return err
		}
	}
	action, err := o.create(ctx, live, step)
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.say("%s of %s would be created by %s: nothing was changed.\n", actionKind, live, printable([]byte(action.Spec.Actor.Username)))
	}
	if err := o.say("%s %s/%s of %s created.\n", actionKind, action.Namespace, action.Name, printable([]byte(action.Spec.Actor.Username))); err != nil {
		return err
	}
	if !o.wait {
		return o.say("When it is accepted: %s\n%s\n", o.next, o.watchHint(live))
	}
	if err := o.await(ctx, live, action); err != nil {
		return err
	}
	return o.say("%s\n", o.watchHint(live))
}

// confirm shows the step and asks.
func (o *migrationActionOptions) confirm(live liveMigration, step *v1alpha1.ActionStep) error {
	what := fmt.Sprintf("%s %s at %s, token %s", o.kind, live, stepText(step), step.Token)
	if !o.terminal {
		return fmt.Errorf("%s has to be confirmed: --yes does that where nobody can be asked. It would: %s", o.verb, what)
	}
	if err := o.say("%s: this %s.\nGo on? [y/N] ", what, o.does); err != nil {
		return err
	}
	switch answer := strings.ToLower(strings.TrimSpace(readLine(o.streams.In))); answer {
	case "y", "yes":
		return nil
	default:
		return fmt.Errorf("not confirmed: nothing was done")
	}
}

// readLine reads to the end of a line, byte by byte, to take no more than that.
func readLine(in io.Reader) string {
	var line []byte
	for b := make([]byte, 1); len(line) < 80; {
		if n, err := in.Read(b); n == 0 && err != nil || n == 1 && b[0] == '\n' {
			break
		} else if n == 1 {
			line = append(line, b[0])
		}
	}
	return string(line)
}

func stepText(step *v1alpha1.ActionStep) string {
	if step.Name == "" {
		return "the step of that token"
	}
	return step.Name
}

func (o *migrationActionOptions) watchHint(live liveMigration) string {
	return "Watch it: " + live.command("status") + " --watch"
}

func (o *migrationActionOptions) say(format string, args ...any) error {
	_, err := fmt.Fprintf(o.streams.Out, format, args...)
	return err
}
