// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// defaultEndpoints is how many endpoints a table shows.
const defaultEndpoints = 20

const weightsStatusLong = `List the WeightPolicies of a namespace, or show one: how far the busiest endpoint is
above the mean, next to what chance alone does (the noise floor) and to what the
computed weights would give; its rollout, sources and conditions; and its endpoints,
the one furthest above the mean first.

Weights are in units of the mean: an endpoint of weight 2 gets twice the requests of
one of weight 1. With locality an endpoint is compared with the mean of its zone.

It takes permission to get and list WeightPolicies and to list WeightSets.`

const weightsStatusExample = `  # All policies of the cluster
  kubectl hashring weights status -A

  # One, with all of its endpoints
  kubectl hashring weights status checkout -n shop --endpoints 0

  # The endpoints more than 5 % above the mean
  kubectl hashring weights status checkout -n shop -o json |
    jq -r '.endpointWeights[] | select(.overAverage > 1.05) | .name'`

type weightsStatusOptions struct {
	streams   genericiooptions.IOStreams
	output    *formatFlag
	config    *genericclioptions.ConfigFlags
	all       bool
	endpoints int
}

func newWeightsStatusCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &weightsStatusOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "status [NAME]",
		Short:   "List WeightPolicies, or show one with its endpoints",
		Long:    weightsStatusLong,
		Example: weightsStatusExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return onePolicy(cmd, args)
		},
	}
	o.output = addFormat(cmd, "o", formatTable, formatWide, formatJSON, formatYAML)
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "list the policies of all namespaces")
	cmd.Flags().IntVar(&o.endpoints, "endpoints", defaultEndpoints, "how many endpoints to show in a table, 0 for all")
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case o.all && (len(args) > 0 || cmd.Flags().Changed("namespace")):
			return usagef(cmd, "--all-namespaces cannot be used together with a name or --namespace")
		case o.endpoints < 0:
			return usagef(cmd, "--endpoints is %d, it must be at least 0", o.endpoints)
		}
		live, err := newLivePolicy(o.config, strings.Join(args, ""))
		if err != nil {
			return err
		}
		if live.name == "" {
			return o.list(cmd.Context(), live)
		}
		return o.show(cmd.Context(), live)
	}
	return cmd
}

// list prints the policies of the namespace, or of all.
func (o *weightsStatusOptions) list(ctx context.Context, live livePolicy) error {
	if o.all {
		live.namespace = ""
	}
	list := &v1alpha1.WeightPolicyList{}
	if err := live.client.List(ctx, list, client.InNamespace(live.namespace)); err != nil {
		return fmt.Errorf("listing WeightPolicies: %w", err)
	}
	report := struct {
		Policies []PolicyRow `json:"policies"`
	}{Policies: []PolicyRow{}}
	for i := range list.Items { // An API server lists in the order of namespaces and names.
		report.Policies = append(report.Policies, rowOf(&list.Items[i]))
	}
	return o.output.print(o.streams.Out, report, func(out io.Writer) { o.printRows(out, report.Policies, live.namespace) })
}

func (o *weightsStatusOptions) printRows(out io.Writer, policies []PolicyRow, namespace string) {
	if len(policies) == 0 && namespace != "" {
		printf(out, "There is no WeightPolicy in namespace %s.\n", namespace)
		return
	}
	if len(policies) == 0 {
		printf(out, "There is no WeightPolicy.\n")
		return
	}
	wide := o.output.value == formatWide
	rows(out, func(w io.Writer) {
		header := []string{"NAME", "TARGET", "MAX/AVG", "NOISE FLOOR", "REPORTING", "ROLLOUT", "READY", "CONVERGED"}
		if wide {
			header = append(header, "PREDICTED", "EFFECTIVE", "VERSION", "PINNED", "HOLDER")
		}
		printf(w, "%s\n", strings.Join(o.namespaced("NAMESPACE", header), "\t"))
		for _, p := range policies {
			cells := []string{
				p.Name, p.Target, dash(p.MaxOverAverage), dash(p.NoiseFloor), dash(p.Reporting), dash(p.Rollout), dash(p.Ready), dash(p.Converged),
			}
			if wide {
				cells = append(cells, dash(p.Predicted), dash(p.Effective), numberOrDash(p.Version), numberOrDash(p.Pinned), dash(p.Holder))
			}
			printf(w, "%s\n", strings.Join(o.namespaced(p.Namespace, cells), "\t"))
		}
	})
}

func (o *weightsStatusOptions) namespaced(namespace string, cells []string) []string {
	if !o.all {
		return cells
	}
	return append([]string{namespace}, cells...)
}

// show prints one policy.
func (o *weightsStatusOptions) show(ctx context.Context, live livePolicy) error {
	policy, err := live.get(ctx)
	if err != nil {
		return err
	}
	served, err := live.weights(ctx)
	if err != nil {
		return err
	}
	report := reportOf(policy, served, live.now())
	return o.output.print(o.streams.Out, report, func(out io.Writer) {
		report.print(out, live)
		report.printEndpoints(out, o.endpoints, o.output.value == formatWide)
		for _, note := range report.Notes {
			printf(out, "\nnote: %s\n", note)
		}
	})
}

// decimals formats a weight or a ratio.
func decimals(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }
