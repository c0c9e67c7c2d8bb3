// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// cliManager is the field manager of what this program writes.
const cliManager = client.FieldOwner("kubectl-hashring")

const rollbackLong = `Hold a ring at an earlier revision: say what that moves, as "diff" does, and set
spec.pinnedRevision. The operator then publishes that revision again, past every
delay, hold and limit, and keeps it until the pin is taken away with --unpin. The
rest of spec has no effect until then.

Without --to-revision it is the newest revision before the one that is pinned or,
without a pin, published, and whose snapshot is another one.

spec.pinnedRevision is set by server-side apply as field manager kubectl-hashring,
and nothing else is. Under GitOps it belongs into Git: set it there as well, or
instead. Where another manager has set the field, the API server refuses the change
unless --force-conflicts is given.

It takes permission to get and patch HashRings, to get and list ControllerRevisions,
and to get ConfigMaps.`

const rollbackExample = `  # Go back to the revision before
  kubectl hashring rollback edge-cache -n cdn

  # What would going back to revision 3 move?
  kubectl hashring rollback edge-cache -n cdn --to-revision 3 --dry-run

  # Follow spec again
  kubectl hashring rollback edge-cache -n cdn --unpin`

type rollbackOptions struct {
	streams    genericiooptions.IOStreams
	toRevision int64
	unpin      bool
	dryRun     bool
	force      bool
	config     *genericclioptions.ConfigFlags
}

func newRollbackCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &rollbackOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "rollback RING [--to-revision N | --unpin]",
		Short:   "Hold a ring at an earlier revision, or let it follow spec again",
		Long:    rollbackLong,
		Example: rollbackExample,
		Args:    oneRing,
	}
	flags := cmd.Flags()
	flags.Int64Var(&o.toRevision, "to-revision", 0, "revision to go back to, one that \"history\" lists")
	flags.BoolVar(&o.unpin, "unpin", false, "take spec.pinnedRevision away")
	flags.BoolVar(&o.dryRun, "dry-run", false, "say what moves, have the API server check the change, and change nothing")
	flags.BoolVar(&o.force, "force-conflicts", false, "take the field over from another manager")
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(cmd); err != nil {
			return err
		}
		live, err := newLiveRing(o.config, args[0])
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), live)
	}
	return cmd
}

func (o *rollbackOptions) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed("to-revision")
	switch {
	case given && o.unpin:
		return usagef(cmd, "--to-revision and --unpin cannot be used together")
	case o.force && o.unpin:
		return usagef(cmd, "--force-conflicts and --unpin cannot be used together: --unpin takes the field away whoever has set it")
	case given && o.toRevision < 1:
		return usagef(cmd, "--to-revision is %d, it must be at least 1", o.toRevision)
	}
	return nil
}

func (o *rollbackOptions) run(ctx context.Context, live liveRing) error {
	hashRing, err := live.get(ctx)
	if err != nil {
		return err
	}
	if o.unpin {
		return o.takePinAway(ctx, live, hashRing)
	}
	target := o.toRevision
	if target == 0 {
		if target, err = live.revisionBefore(ctx, hashRing); err != nil {
			return err
		}
	}
	if err := o.showPinned(ctx, live, target); err != nil {
		return err
	}
	return o.pin(ctx, live, hashRing, target)
}

// revisionBefore returns the newest revision before the one that is pinned, or published, and that has another snapshot.
func (l liveRing) revisionBefore(ctx context.Context, hashRing *v1alpha1.HashRing) (int64, error) {
	var now int64
	switch pinned, active := hashRing.Spec.PinnedRevision, hashRing.Status.Active; {
	case pinned != nil:
		now = *pinned // What is published has a number of its own, and the digest of this one.
	case active != nil:
		now = active.Revision
	default:
		return 0, fmt.Errorf("%s has published nothing that it could go back from", l)
	}
	kept, err := l.revisions(ctx)
	if err != nil {
		return 0, err
	}
	digest := ""
	for _, k := range kept {
		if k.number == now {
			digest = k.digest
		}
	}
	if digest == "" {
		return 0, fmt.Errorf("revision %d of %s is not kept, so it cannot be told which one was before: --to-revision names one that history lists", now, l)
	}
	for _, k := range slices.Backward(kept) {
		if k.number < now && k.digest != digest {
			return k.number, nil
		}
	}
	return 0, fmt.Errorf("no revision of %s before revision %d is kept that has another snapshot", l, now)
}

// showPinned prints what going from the published ring to a revision moves. That what is published cannot be read, is no reason
// not to go back.
func (o *rollbackOptions) showPinned(ctx context.Context, live liveRing, target int64) error {
	after, err := live.side(ctx, target)
	if err != nil {
		return err
	}
	before, err := live.published(ctx)
	if err != nil {
		return o.say("note: what moves cannot be told: %v\n\n", err)
	}
	return o.showMovement(before, live.as(after), true)
}

// showUnpinned prints what going from the published ring to that of spec moves, as far as spec says all of it.
func (o *rollbackOptions) showUnpinned(ctx context.Context, live liveRing, hashRing *v1alpha1.HashRing) error {
	if candidate := hashRing.Status.Candidate; candidate != nil {
		return o.say("Without the pin spec asks for a ring that moves %s of the key space: status.candidate describes it.\n\n", candidate.Movement)
	}
	if checkBackendsKnown(hashRing) != nil {
		return o.say("note: what moves cannot be told: spec takes backends from Services\n\n")
	}
	before, err := live.published(ctx)
	var after *planSide
	if err == nil {
		after, err = planned(hashRing, before)
	}
	if err != nil {
		return o.say("note: what moves cannot be told: %v\n\n", err)
	}
	if err := o.showMovement(before, after, false); err != nil {
		return err
	}
	return o.noteWaits(hashRing, before, after)
}

func (o *rollbackOptions) showMovement(before, after *planSide, past bool) error {
	show := movementFlags{pairs: defaultPairs, backends: defaultBackends, output: &formatFlag{value: formatTable}, past: past}
	if _, err := show.print(o.streams.Out, before, after); err != nil {
		return err
	}
	return o.say("\n")
}

// noteWaits says that a change of algorithm does not move by itself.
func (o *rollbackOptions) noteWaits(hashRing *v1alpha1.HashRing, before, after *planSide) error {
	if before.ring == nil || hashRing.Spec.ChangePolicy == v1alpha1.ChangeImmediate || before.ring.Algorithm() == after.ring.Algorithm() {
		return nil
	}
	return o.say("note: spec asks for another algorithm than the pinned revision has, so this waits as the candidate: nothing moves before it is taken\n\n")
}

// pin sets spec.pinnedRevision.
func (o *rollbackOptions) pin(ctx context.Context, live liveRing, hashRing *v1alpha1.HashRing, target int64) error {
	if pinned := hashRing.Spec.PinnedRevision; pinned != nil && *pinned == target {
		return o.say("%s is pinned to revision %d already.\n", live, target)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pinnedRevision": target}}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(hashRingKind))
	object.SetNamespace(live.namespace)
	object.SetName(live.name)
	object.SetUID(hashRing.UID) // What has been deleted meanwhile is not made again.
	options := []client.ApplyOption{cliManager}
	if o.dryRun {
		options = append(options, client.DryRunAll)
	}
	if o.force {
		options = append(options, client.ForceOwnership)
	}
	err := live.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	switch {
	case apierrors.IsConflict(err) && !o.force:
		return fmt.Errorf("setting spec.pinnedRevision of %s: %w: change it where that manager takes it from, or use --force-conflicts", live, err)
	case err != nil:
		return fmt.Errorf("setting spec.pinnedRevision of %s: %w", live, err)
	case o.dryRun:
		return o.say("%s would be pinned to revision %d: nothing was changed.\n", live, target)
	}
	if why := frozenBy(hashRing); why != "" {
		if err := o.say("note: %s\n", why); err != nil {
			return err
		}
	}
	return o.say("%s is pinned to revision %d. rollback --unpin lets it follow spec again.\n"+
		"note: under GitOps set spec.pinnedRevision in Git as well, where the ring is described\n", live, target)
}

// frozenBy says why a pin has to wait; "" where it has not.
func frozenBy(r *v1alpha1.HashRing) string {
	const waits = ", and the operator takes no pin until the migration is rolled back or over"
	lock, candidate := r.Status.Migration, r.Status.Candidate
	switch {
	case lock != nil && lock.Phase != v1alpha1.LockLocked:
		return "RingMigration " + lock.Name + " has the ring" + waits
	case lock == nil && candidate != nil && candidate.Slot != "":
		return "a candidate is published" + waits
	}
	return ""
}

// takePinAway removes spec.pinnedRevision, whoever has set it.
func (o *rollbackOptions) takePinAway(ctx context.Context, live liveRing, hashRing *v1alpha1.HashRing) error {
	pinned := hashRing.Spec.PinnedRevision
	if pinned == nil {
		return o.say("%s is not pinned.\n", live)
	}
	if err := o.showUnpinned(ctx, live, hashRing); err != nil {
		return err
	}
	options := []client.PatchOption{cliManager}
	if o.dryRun {
		options = append(options, client.DryRunAll)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"pinnedRevision":null}}`, hashRing.UID)
	if err := live.client.Patch(ctx, hashRing.DeepCopy(), client.RawPatch(types.MergePatchType, patch), options...); err != nil {
		return fmt.Errorf("taking spec.pinnedRevision of %s away: %w", live, err)
	}
	if o.dryRun {
		return o.say("%s would no longer be pinned to revision %d: nothing was changed.\n", live, *pinned)
	}
	return o.say("%s is no longer pinned to revision %d: it follows spec again.\n"+
		"note: under GitOps take spec.pinnedRevision out of Git as well, or it comes back\n", live, *pinned)
}

func (o *rollbackOptions) say(format string, args ...any) error {
	_, err := fmt.Fprintf(o.streams.Out, format, args...)
	return err
}
