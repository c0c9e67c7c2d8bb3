// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const weightsRollbackLong = `Serve weights of an earlier time: say what changes, ask, and set the annotation
ringwright.dev/pinned-weights of the WeightPolicy to a revision that "weights history"
lists. The balancer serves these weights until "weights resume"; endpoints that the
revision does not have are served as new ones are. spec is not changed.

Without --to-revision it is the newest revision before the one that is pinned or,
without a pin, the newest one whose weights differ from what is served.

It takes permission to get and patch WeightPolicies, and to list WeightSets and
ControllerRevisions.`

const weightsRollbackExample = `  # Go back to the weights before
  kubectl hashring weights rollback checkout -n shop

  # What would revision 12 change?
  kubectl hashring weights rollback checkout -n shop --to-revision 12 --dry-run`

const weightsResumeLong = `Let the weights of a WeightPolicy follow the load again: take the annotation
ringwright.dev/pinned-weights away.

It takes permission to get and patch WeightPolicies.`

const weightsResumeExample = `  kubectl hashring weights resume checkout -n shop`

type weightsRollbackOptions struct {
	streams    genericiooptions.IOStreams
	toRevision int64
	yes        bool
	dryRun     bool
	terminal   bool
	config     *genericclioptions.ConfigFlags
}

func newWeightsRollbackCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &weightsRollbackOptions{streams: streams, terminal: canAsk(streams)}
	cmd := &cobra.Command{
		Use:     "rollback NAME [--to-revision N]",
		Short:   "Serve the weights of an earlier time",
		Long:    weightsRollbackLong,
		Example: weightsRollbackExample,
		Args:    onePolicy,
	}
	flags := cmd.Flags()
	flags.Int64Var(&o.toRevision, "to-revision", 0, "revision to go back to, one that \"weights history\" lists")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&o.dryRun, "dry-run", false, "say what changes, have the API server check the change, and change nothing")
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("to-revision") && o.toRevision < 1 {
			return usagef(cmd, "--to-revision is %d, it must be at least 1", o.toRevision)
		}
		live, err := newLivePolicy(o.config, args[0])
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), live)
	}
	return cmd
}

func (o *weightsRollbackOptions) run(ctx context.Context, live livePolicy) error {
	policy, err := live.get(ctx)
	if err != nil {
		return err
	}
	history, err := live.history(ctx, policy)
	if err != nil {
		return err
	}
	served, err := live.weights(ctx)
	if err != nil {
		return err
	}
	target, err := o.target(history, served)
	if err != nil {
		return err
	}
	if history.Pinned == target.Revision {
		return o.say("%s is pinned to revision %d already.\n", live, target.Revision)
	}
	if err := o.say("%s", difference(target, served)); err != nil {
		return err
	}
	if err := o.confirm(live, target.Revision); err != nil {
		return err
	}
	if err := annotatePin(ctx, live, policy, strconv.FormatInt(target.Revision, 10), o.dryRun); err != nil {
		return err
	}
	if o.dryRun {
		return o.say("%s would be pinned to revision %d: nothing was changed.\n", live, target.Revision)
	}
	return o.say("%s is pinned to revision %d. %s lets its weights follow the load again.\n", live, target.Revision, live.command("resume"))
}

// target returns the record to go back to.
func (o *weightsRollbackOptions) target(history *WeightsHistoryReport, served servedWeights) (*WeightsRecord, error) {
	if o.toRevision > 0 {
		record := history.find(o.toRevision)
		switch {
		case record == nil:
			return nil, fmt.Errorf("revision %d of WeightPolicy %s is not kept; revisions that are: %s", o.toRevision, history.Policy, history.kept())
		case record.Problem != "":
			return nil, fmt.Errorf("%s", record.Problem)
		}
		return record, nil
	}
	for i := len(history.Records) - 1; i >= 0; i-- {
		record := &history.Records[i]
		before := history.Pinned == 0 || record.Revision < history.Pinned
		if changed, _ := compareWeights(record, served); before && record.Problem == "" && (history.Pinned > 0 || changed > 0) {
			return record, nil
		}
	}
	return nil, fmt.Errorf("WeightPolicy %s has nothing to go back to; revisions that are kept: %s", history.Policy, history.kept())
}

// compareWeights returns how many endpoints have another weight in a record, and the largest factor, up or down, by which one differs.
func compareWeights(record *WeightsRecord, served servedWeights) (changed int, largest float64) {
	largest = 1
	for _, e := range served.endpoints {
		weight, ok := record.record.Weight(e.ID)
		if !ok || weight == e.Weight {
			continue
		}
		changed++
		factor := float64(weight) / float64(max(e.Weight, 1))
		if math.Abs(math.Log(factor)) > math.Abs(math.Log(largest)) {
			largest = factor
		}
	}
	return changed, largest
}

// difference says what a record changes.
func difference(record *WeightsRecord, served servedWeights) string {
	unknown := 0
	for _, e := range served.endpoints {
		if _, ok := record.record.Weight(e.ID); !ok {
			unknown++
		}
	}
	changed, largest := compareWeights(record, served)
	var out strings.Builder
	printf(&out, "Revision %d is of %s", record.Revision, record.At)
	if record.MaxOverAverage != "" {
		printf(&out, ", when max/avg was %s", record.MaxOverAverage)
	}
	printf(&out, ".\nOf %s %d would have another weight", plural(len(served.endpoints), "endpoint", "endpoints"), changed)
	if changed > 0 {
		printf(&out, ", at most %s times what it is", decimals(largest, 3))
	}
	if unknown > 0 {
		printf(&out, "; %d are not in it and are served as new ones are", unknown)
	}
	printf(&out, ".\n")
	return out.String()
}

func (o *weightsRollbackOptions) confirm(live livePolicy, revision int64) error {
	if o.yes || o.dryRun {
		return nil
	}
	if !o.terminal {
		return fmt.Errorf("the rollback of %s to revision %d has to be confirmed: --yes does that where nobody can be asked", live, revision)
	}
	if err := o.say("Go on? [y/N] "); err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(readLine(o.streams.In))) {
	case "y", "yes":
		return nil
	default:
		return fmt.Errorf("not confirmed: nothing was done")
	}
}

func (o *weightsRollbackOptions) say(format string, args ...any) error {
	_, err := fmt.Fprintf(o.streams.Out, format, args...)
	return err
}

// annotatePin sets the pin, or takes it away where value is "". It is a patch of this annotation, and not an apply, which would give up what
// an earlier apply of the same manager has set.
func annotatePin(ctx context.Context, live livePolicy, policy *v1alpha1.WeightPolicy, value string, dryRun bool) error {
	var pin any
	if value != "" {
		pin = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         policy.UID, // A policy of the same name that was made since has other weights.
		"annotations": map[string]any{v1alpha1.AnnotationPinnedWeights: pin},
	}})
	if err != nil {
		return err
	}
	options := []client.PatchOption{cliManager}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := live.client.Patch(ctx, policy.DeepCopy(), client.RawPatch(types.MergePatchType, patch), options...); err != nil {
		return fmt.Errorf("annotating %s: %w", live, err)
	}
	return nil
}

func newWeightsResumeCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &weightsRollbackOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "resume NAME",
		Short:   "Let the weights follow the load again after a rollback",
		Long:    weightsResumeLong,
		Example: weightsResumeExample,
		Args:    onePolicy,
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "have the API server check the change, and change nothing")
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		live, err := newLivePolicy(o.config, args[0])
		if err != nil {
			return err
		}
		return o.resume(cmd.Context(), live)
	}
	return cmd
}

func (o *weightsRollbackOptions) resume(ctx context.Context, live livePolicy) error {
	policy, err := live.get(ctx)
	if err != nil {
		return err
	}
	pin, pinned := policy.Annotations[v1alpha1.AnnotationPinnedWeights]
	if !pinned {
		return o.say("%s is not pinned.\n", live)
	}
	if err := annotatePin(ctx, live, policy, "", o.dryRun); err != nil {
		return err
	}
	if o.dryRun {
		return o.say("%s would no longer be pinned to revision %s: nothing was changed.\n", live, printable([]byte(pin)))
	}
	return o.say("%s is no longer pinned to revision %s: its weights follow the load again.\n", live, printable([]byte(pin)))
}
