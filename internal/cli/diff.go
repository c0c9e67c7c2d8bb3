// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const diffLong = `Say what moves from one revision of a ring to another: the exact share of the key
space, what each backend gains and loses, and from whom to whom. Nothing is written.

A revision is a number that "history" lists, or "published" for the ring that
readers have now. Addresses are not compared: revisions do not hold those of named
backends.

Exit codes are those of kubectl diff: 0 nothing moves, whatever else changes; 1 keys
move; above 1 an error: 2 the command line is wrong, 3 the revisions could not be
compared, for example because one is not kept.

It takes permission to get and list ControllerRevisions and, for the published ring, to get
ConfigMaps.`

const diffExample = `  # What has moved since revision 3?
  kubectl hashring diff edge-cache -n cdn --from 3

  # What would going back to revision 3 move?
  kubectl hashring diff edge-cache -n cdn --from published --to 3

  # Between two earlier revisions, for readers that ask for a feature
  kubectl hashring diff edge-cache -n cdn --from 3 --to 5 --features eu`

// publishedRevision is the value of --from and --to for the ring that is published.
const publishedRevision = "published"

type diffOptions struct {
	streams  genericiooptions.IOStreams
	from, to string
	show     movementFlags
	config   *genericclioptions.ConfigFlags
}

func newDiffCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &diffOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "diff RING --from REVISION [--to REVISION]",
		Short:   "Say what moves from one revision of a ring to another",
		Long:    diffLong,
		Example: diffExample,
		Args:    oneRing,
	}
	cmd.Flags().StringVar(&o.from, "from", "", "revision before: a number of \"history\", or "+publishedRevision)
	cmd.Flags().StringVar(&o.to, "to", publishedRevision, "revision after: a number of \"history\", or "+publishedRevision)
	o.show.past = true
	o.show.add(cmd, "compare for readers with these features")
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(cmd); err != nil {
			return err
		}
		live, err := newLiveRing(o.config, args[0])
		if err != nil {
			return &codeError{code: ExitPlanFailed, err: err}
		}
		return movementCode(o.run(cmd.Context(), live))
	}
	return cmd
}

func (o *diffOptions) check(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("from") {
		return usagef(cmd, "no revision given: --from is a number that \"history\" lists, or %s", publishedRevision)
	}
	for _, flag := range []struct{ name, value string }{{"from", o.from}, {"to", o.to}} {
		if _, err := parseRevision(flag.value); err != nil {
			return usagef(cmd, "--%s is %q, it must be a revision, at least 1, or %s", flag.name, flag.value, publishedRevision)
		}
	}
	return o.show.check(cmd)
}

// parseRevision returns the number of a revision, 0 for the published one.
func parseRevision(text string) (int64, error) {
	if text == publishedRevision {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n < 1 {
		err = fmt.Errorf("revision %d is below 1", n)
	}
	return n, err
}

// run prints the difference and says whether keys move.
func (o *diffOptions) run(ctx context.Context, live liveRing) (bool, error) {
	before, err := live.sideOf(ctx, o.from)
	if err != nil {
		return false, err
	}
	after, err := live.sideOf(ctx, o.to)
	if err != nil {
		return false, err
	}
	return o.show.print(o.streams.Out, before, live.as(after))
}

// sideOf returns the ring that --from or --to names, which have been checked.
func (l liveRing) sideOf(ctx context.Context, revision string) (*planSide, error) {
	n, err := parseRevision(revision)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return l.side(ctx, n)
	}
	return l.published(ctx)
}

// as returns a side as the one after a change, which a report is about: its name comes first.
func (l liveRing) as(after *planSide) *planSide {
	about := *after
	about.origin = fmt.Sprintf("%s/%s, %s", l.namespace, l.name, after.origin)
	return &about
}
