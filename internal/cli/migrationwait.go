// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const migrationWaitLong = `Wait until a migration has come to a point:

  --for=succeeded       all consumers are on the candidate, the old ring is gone
  --for=rolled-back     all are back on the stable ring
  --for=step=STAGE/N    step N of a stage is complete: N counts from 1
  --for=phase=PHASE     it is in a phase, such as Soaking
  --for=held            something holds it

Exit codes: 0 it is there; 1 an error; 2 the command line is wrong; 3 it goes, or has
gone, back; 4 the time is over; 5 it is held, and only a person can end that; 6 it has
ended otherwise, or is gone. --through-holds goes on waiting where it would be 5.

A status that is about an earlier spec counts for nothing.

It takes permission to get and watch RingMigrations.`

const migrationWaitExample = `  # In a pipeline: go on when Europe has all of it
  kubectl hashring migration wait v1-to-v3 -n cdn --for=step=europe/3 --timeout 6h

  # To the end, approvals included
  kubectl hashring migration wait v1-to-v3 -n cdn --for=succeeded --through-holds --timeout 48h`

// Exit codes of "migration wait".
const (
	// ExitRolledBack: the migration goes, or has gone, back.
	ExitRolledBack = 3
	// ExitTimedOut: the time is over. It is also that of an action that was not answered in time.
	ExitTimedOut = 4
	// ExitHeld: something holds that only a person can end.
	ExitHeld = 5
	// ExitEnded: the migration has ended otherwise, or is gone.
	ExitEnded = 6
)

type migrationWaitOptions struct {
	streams      genericiooptions.IOStreams
	target       string
	timeout      time.Duration
	throughHolds bool
	config       *genericclioptions.ConfigFlags
}

func newMigrationWaitCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &migrationWaitOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "wait NAME --for=CONDITION",
		Short:   "Wait until a migration has come to a point, with exit codes for pipelines",
		Long:    migrationWaitLong,
		Example: migrationWaitExample,
		Args:    oneMigration,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.target, "for", "", "succeeded, rolled-back, step=STAGE/N, phase=PHASE or held")
	flags.DurationVar(&o.timeout, "timeout", time.Hour, "how long to wait")
	flags.BoolVar(&o.throughHolds, "through-holds", false, "go on waiting where only a person can end a hold")
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		point, err := parsePoint(o.target)
		switch {
		case err != nil:
			return usagef(cmd, "--for: %v", err)
		case o.timeout <= 0:
			return usagef(cmd, "--timeout is %s, it must be more than 0", o.timeout)
		}
		live, err := newLiveMigration(o.config, args[0])
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), live, point)
	}
	return cmd
}

func (o *migrationWaitOptions) run(ctx context.Context, live liveMigration, p point) error {
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var last *v1alpha1.RingMigration
	err := live.follow(limited, func(object *v1alpha1.RingMigration) (bool, error) {
		if object == nil {
			return true, &codeError{ExitEnded, fmt.Errorf("%s is gone", live)}
		}
		last = object
		return o.judge(live, migrationView{object}, p)
	})
	var coded *codeError
	switch {
	case err == nil:
		_, err = fmt.Fprintf(o.streams.Out, "%s is at what was waited for: %s.\n", live, p)
		return err
	case errors.As(err, &coded) || limited.Err() == nil || ctx.Err() != nil:
		return err
	}
	text := fmt.Sprintf("%s is not at %s after %s", live, p, o.timeout)
	if last != nil {
		text += ": it is " + place(migrationView{last})
	}
	return &codeError{ExitTimedOut, errors.New(text)}
}

// judge says whether the waiting is over. An error has the exit code of why.
func (o *migrationWaitOptions) judge(live liveMigration, v migrationView, p point) (bool, error) {
	switch done, err := p.reached(v); {
	case err != nil:
		return true, fmt.Errorf("%s: %w", live, err)
	case !v.observed():
		return false, nil
	case done:
		return true, nil
	case v.goesBack() && p.kind != pointRolledBack:
		cause := ""
		if back := v.Status.Rollback; back != nil {
			cause = fmt.Sprintf(": %s %s", back.Cause, back.Detail)
		}
		return true, &codeError{ExitRolledBack, fmt.Errorf("%s is %s%s", live, v.phase(), cause)}
	case v.phase() == v1alpha1.MigrationSucceeded:
		return true, &codeError{ExitEnded, fmt.Errorf("%s has succeeded: what was waited for, %s, does not come any more", live, p)}
	case o.throughHolds || v.goesBack():
		return false, nil
	}
	for _, h := range explainHolds(v, live.now(), live.command) {
		if h.ByPerson {
			return true, &codeError{ExitHeld, fmt.Errorf("%s is %s and held by %s (%s), which only a person can end: %s", live, place(v), h.Type, h.Detail, h.EndedBy)}
		}
	}
	return false, nil
}

// place says where a migration is, with the step.
func place(v migrationView) string {
	if step := v.step(); step != "" && !v.goesBack() {
		return v.place() + " at " + step
	}
	return v.place()
}
