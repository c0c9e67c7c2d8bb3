// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
)

const catalogRestoreLong = `Bring rings back to what a copy of the catalog says: every ring of the copy whose
published snapshot is another one now is pinned to the revision of the copy, by
spec.pinnedRevision as field manager kubectl-hashring. The operator then
publishes that again, past every delay, hold and limit, and keeps it until the
pin is taken away.

A ring can be restored while its HashRing exists and the revision is among those
that are kept of it (spec.historyLimit). Every other one is named with the
reason, and the exit code is 1. Rings that the copy does not have are left alone.

It is for the namespace of the context unless -n or -A says otherwise.`

const catalogRestoreExample = `  # What would be restored?
  kubectl hashring catalog restore --at 20260301t120000z -n cdn --dry-run

  # Every ring of the cluster
  kubectl hashring catalog restore --at 20260301t120000z -A`

// What becomes of a ring.
const (
	restoreUnchanged = "unchanged"
	restorePinned    = "pinned"
	restoreWouldPin  = "would be pinned"
	restoreFailed    = "cannot be restored"
)

// RestoreReport is what "catalog restore" prints.
type RestoreReport struct {
	// Source is the ConfigMap of the copy.
	Source string          `json:"source"`
	DryRun bool            `json:"dryRun,omitempty"`
	Rings  []RestoreResult `json:"rings"`
	Failed int             `json:"failed"`
}

// RestoreResult is what became of one ring of the copy.
type RestoreResult struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Result is "unchanged", "pinned", "would be pinned" or "cannot be restored".
	Result string `json:"result"`
	// Revision is the one that the ring is pinned to.
	Revision int64 `json:"revision,omitempty"`
	// Reason says why, where it cannot be restored or there is something else to know.
	Reason string `json:"reason,omitempty"`
}

type catalogRestoreOptions struct {
	streams genericiooptions.IOStreams
	flags   *catalogFlags
	output  *formatFlag
	all     bool
	dryRun  bool
}

func newCatalogRestoreCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "restore --at COPY",
		Short:   "Bring rings back to what a copy of the catalog says",
		Long:    catalogRestoreLong,
		Example: catalogRestoreExample,
		Args:    noArguments,
	}
	o := &catalogRestoreOptions{streams: streams, flags: addCatalogFlags(cmd)}
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "restore the rings of all namespaces")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say what would be done")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.all && cmd.Flags().Changed("namespace") {
			return usagef(cmd, "--namespace and --all-namespaces cannot be used together")
		}
		if !cmd.Flags().Changed("at") {
			return usagef(cmd, "--at is missing: \"kubectl hashring catalog\" lists the copies")
		}
		name, err := o.flags.copyName(cmd)
		if err != nil {
			return err
		}
		only := ""
		if !o.all {
			if only, err = configNamespace(o.flags.config); err != nil {
				return err
			}
		}
		c, err := o.flags.client()
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), c, name, only)
	}
	return cmd
}

func (o *catalogRestoreOptions) run(ctx context.Context, c client.Client, name, only string) error {
	content, err := readCatalog(ctx, c, o.flags.namespace, name)
	if err != nil {
		return err
	}
	rings := inNamespace(content, only).Rings
	if len(rings) == 0 && only != "" { // An empty table would read as if all were well.
		return fmt.Errorf("ConfigMap %s/%s has no ring in namespace %s: -n takes another namespace, -A all", o.flags.namespace, name, only)
	}
	report := &RestoreReport{
		Source: fmt.Sprintf("ConfigMap %s/%s", o.flags.namespace, name), DryRun: o.dryRun, Rings: []RestoreResult{},
	}
	for _, ring := range rings {
		result := o.restore(ctx, c, ring)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if result.Result == restoreFailed {
			report.Failed++
		}
		report.Rings = append(report.Rings, result)
	}
	if err := o.output.print(o.streams.Out, report, report.print); err != nil {
		return err
	}
	if report.Failed > 0 {
		return fmt.Errorf("%d of %s cannot be restored", report.Failed, plural(len(report.Rings), "ring", "rings"))
	}
	return nil
}

// restore brings one ring back, and says what became of it. Others are restored even where this one cannot be.
func (o *catalogRestoreOptions) restore(ctx context.Context, c client.Client, want catalog.Ring) RestoreResult {
	result := RestoreResult{Namespace: want.Namespace, Name: want.Name}
	now := &v1alpha1.HashRing{}
	err := c.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: want.Name}, now)
	switch {
	case want.Digest == "":
		result.Result, result.Reason = restoreUnchanged, "nothing was published of it"
		return result
	case err == nil && now.Status.Active != nil && now.Status.Active.Digest == want.Digest:
		result.Result, result.Revision = restoreUnchanged, 0
		return result
	case err == nil:
		result.Revision, err = keptRevisionOf(ctx, c, want)
	case apierrors.IsNotFound(err):
		err = errors.New("the HashRing does not exist: made again within its tombstone, it takes over what is left")
	}
	if err == nil {
		err = o.pin(ctx, c, now, result.Revision)
	}
	switch {
	case err != nil:
		result.Result, result.Revision, result.Reason = restoreFailed, 0, err.Error()
	case o.dryRun:
		result.Result = restoreWouldPin
	default:
		result.Result, result.Reason = restorePinned, frozenBy(now)
	}
	return result
}

// keptRevisionOf returns the revision that is kept of a ring with the digest of the copy: that of the copy, or where that is not
// kept any more, the newest one that has the same bytes.
func keptRevisionOf(ctx context.Context, c client.Client, want catalog.Ring) (int64, error) {
	kept, err := liveRing{client: c, namespace: want.Namespace, name: want.Name}.revisions(ctx)
	if err != nil {
		return 0, err
	}
	newest := int64(0)
	for _, revision := range kept {
		switch {
		case revision.digest != want.Digest:
		case revision.number == want.Revision:
			return revision.number, nil
		default:
			newest = max(newest, revision.number)
		}
	}
	if newest == 0 {
		return 0, fmt.Errorf("revision %d with digest %s is not kept any more", want.Revision, shortDigest(want.Digest))
	}
	return newest, nil
}

// pin sets spec.pinnedRevision. Where somebody else maintains it, it stays: GitOps would set it back.
func (o *catalogRestoreOptions) pin(ctx context.Context, c client.Client, ring *v1alpha1.HashRing, revision int64) error {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pinnedRevision": revision}}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(hashRingKind))
	object.SetNamespace(ring.Namespace)
	object.SetName(ring.Name)
	object.SetUID(ring.UID) // What has been deleted meanwhile is not made again.
	options := []client.ApplyOption{cliManager}
	if o.dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...); err != nil {
		return fmt.Errorf("setting spec.pinnedRevision: %w", err)
	}
	return nil
}

func (r *RestoreReport) print(out io.Writer) {
	printf(out, "%s: %s\n\n", r.Source, plural(len(r.Rings), "ring", "rings"))
	rows(out, func(w io.Writer) {
		printf(w, "NAMESPACE\tNAME\tRESULT\tREVISION\tREASON\n")
		for _, ring := range r.Rings {
			printf(w, "%s\t%s\t%s\t%s\t%s\n", ring.Namespace, ring.Name, ring.Result, numberOrDash(ring.Revision), dash(ring.Reason))
		}
	})
}
