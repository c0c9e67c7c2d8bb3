// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const releaseLong = `Confirm a loss that holds a ring: show the hold, and let the backends that it names
be removed. They are removed at once, without waiting for spec.membership.leaveDelay.

It sets the annotation ringwright.dev/release of the HashRing to the token of
status.hold, which stands for these backends: what is lost later is held again.

Only a hold for the reason SuddenLoss is ended by it. For the others the command says
what ends them.

It takes permission to get and patch HashRings.`

const releaseExample = `  # What holds the ring?
  kubectl hashring release edge-cache -n cdn --dry-run

  # The backends are gone on purpose: go on without them
  kubectl hashring release edge-cache -n cdn`

type releaseOptions struct {
	streams genericiooptions.IOStreams
	dryRun  bool
	config  *genericclioptions.ConfigFlags
}

func newReleaseCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &releaseOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "release RING",
		Short:   "Confirm a loss of backends that holds a ring",
		Long:    releaseLong,
		Example: releaseExample,
		Args:    oneRing,
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the hold, have the API server check the change, and change nothing")
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		live, err := newLiveRing(o.config, args[0])
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), live)
	}
	return cmd
}

func (o *releaseOptions) run(ctx context.Context, live liveRing) error {
	hashRing, err := live.get(ctx)
	if err != nil {
		return err
	}
	hold := hashRing.Status.Hold
	if hold == nil {
		return fmt.Errorf("%s is not held: there is nothing to release", live)
	}
	if err := o.show(live, hashRing); err != nil {
		return err
	}
	if hold.Token == "" {
		return fmt.Errorf("a release does not end the hold of %s: %s", live, whatEnds(hashRing))
	}
	if hashRing.Annotations[v1alpha1.AnnotationRelease] == hold.Token {
		return o.say("%s has been released already: the operator is about to see it.\n", live)
	}
	if err := o.annotate(ctx, live, hashRing); err != nil {
		return fmt.Errorf("annotating %s: %w", live, err)
	}
	if o.dryRun {
		return o.say("%s would be released: nothing was changed.\n", live)
	}
	return o.say("%s is released: what the hold is about may be removed.\n", live)
}

// show prints the hold.
func (o *releaseOptions) show(live liveRing, hashRing *v1alpha1.HashRing) error {
	hold := hashRing.Status.Hold
	var out strings.Builder
	printf(&out, "%s is held since %s\n\n", live, hold.Since.UTC().Format(time.RFC3339))
	rows(&out, func(w io.Writer) {
		printf(w, "reason\t%s\n", hold.Reason)
		printf(w, "token\t%s\n", dash(hold.Token))
		if hold.Count > 0 {
			printf(w, "backends\t%d\n", hold.Count)
		}
		if pending := hashRing.Status.Pending; pending != nil {
			printf(w, "pending\t%s of the key space moves when nothing holds and all delays are over\n", pending.Movement)
		}
	})
	for _, id := range hold.Backends {
		printf(&out, "  %s\n", id)
	}
	if left := int(hold.Count) - len(hold.Backends); left > 0 && len(hold.Backends) > 0 {
		printf(&out, "  and %s\n", plural(left, "other", "others"))
	}
	return o.say("%s\n", &out)
}

// whatEnds says what ends a hold that a release does not.
func whatEnds(hashRing *v1alpha1.HashRing) string {
	membership := hashRing.Spec.Membership
	switch reason := hashRing.Status.Hold.Reason; reason {
	case v1alpha1.ReasonPinned:
		pinned := "an earlier revision"
		if n := hashRing.Spec.PinnedRevision; n != nil {
			pinned = "revision " + strconv.FormatInt(*n, 10)
		}
		return fmt.Sprintf("spec.pinnedRevision holds it at %s; \"kubectl hashring rollback %s -n %s --unpin\" takes that away",
			pinned, hashRing.Name, hashRing.Namespace)
	case v1alpha1.ReasonMovementBudget:
		moves := ""
		if c := hashRing.Status.Candidate; c != nil {
			moves = fmt.Sprintf(" The change moves %s.", c.Movement)
		}
		return fmt.Sprintf("spec.membership.maxMovement is %s: a larger one, or spec.changePolicy Immediate, lets the change through.%s",
			cmp.Or(membership.MaxMovement, "not set any more"), moves)
	case v1alpha1.ReasonBelowMinimum:
		return fmt.Sprintf("spec.membership.minBackends is %d: more backends, a weight above 0 for those that are drained, or a smaller minBackends, end it", membership.MinBackends)
	default:
		return fmt.Sprintf("reason %s ends with its cause", reason)
	}
}

// annotate confirms the hold. It is a patch of this annotation, and not an apply, which would give up what an earlier apply of
// the same manager has set.
func (o *releaseOptions) annotate(ctx context.Context, live liveRing, hashRing *v1alpha1.HashRing) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         hashRing.UID, // A HashRing of the same name that was made since has other holds.
		"annotations": map[string]string{v1alpha1.AnnotationRelease: hashRing.Status.Hold.Token},
	}})
	if err != nil {
		return err
	}
	options := []client.PatchOption{cliManager}
	if o.dryRun {
		options = append(options, client.DryRunAll)
	}
	return live.client.Patch(ctx, hashRing.DeepCopy(), client.RawPatch(types.MergePatchType, patch), options...)
}

func (o *releaseOptions) say(format string, args ...any) error {
	_, err := fmt.Fprintf(o.streams.Out, format, args...)
	return err
}
