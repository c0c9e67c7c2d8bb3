// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/pkg/ring"
)

const inspectLong = `Print what a ring is made of: algorithm, sizes, the share of each backend beside
its target, how well the ring is balanced and what theory expects.

Shares are exact: arc lengths, not samples. With --features the backends and the
balance are those that readers with these features see.`

const inspectExample = `  # A ring in the cluster
  kubectl hashring inspect edge-cache -n cdn

  # The balance among the backends that have both features
  kubectl hashring inspect edge-cache -n cdn --features eu,ssd

  # The busiest backends of a snapshot
  kubectl hashring inspect --snapshot out/ring-a.snap -o json |
    jq '.backends | sort_by(-.shareOverTarget) | .[:5]'`

// InspectReport is what "inspect" prints.
type InspectReport struct {
	// Source is where the ring was read from, as text.
	Source string `json:"source"`
	// Ring is namespace and name of the HashRing, Generation that of routing.json; absent for a snapshot file.
	Ring       string `json:"ring,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Revision is the number of the revision; only a cluster tells.
	Revision int64      `json:"revision,omitempty"`
	Snapshot RingReport `json:"snapshot"`
	// View is there with --features.
	View *ViewReport `json:"view,omitempty"`
	// Backends are those of the view or, without --features, all of them, in ring order.
	Backends []BackendReport `json:"backends"`
}

// ViewReport is the ring restricted to the backends that have all of the features and a weight above 0.
type ViewReport struct {
	Features []string      `json:"features"`
	Backends int           `json:"backends"`
	Points   int           `json:"points"`
	Balance  BalanceReport `json:"balance"`
	// Trimmed says that a V3 ring is trimmed for this set of features; others are answered from the ring as it is.
	Trimmed bool `json:"trimmed,omitempty"`
}

// BackendReport is one backend. Shares are fractions of the key space with nine decimals.
type BackendReport struct {
	// ID is the identity in the snapshot.
	ID string `json:"id"`
	// Address is where the backend is dialled; absent for a snapshot of names, which does not hold it.
	Address  string   `json:"address,omitempty"`
	Weight   uint32   `json:"weight"`
	Zone     string   `json:"zone,omitempty"`
	Features []string `json:"features,omitempty"`
	// Points is how many it has.
	Points int `json:"points"`
	// Share is what it owns, Target its weight over the sum of the weights.
	Share  float64 `json:"share"`
	Target float64 `json:"target"`
	// ShareOverTarget is 1 where they are equal; absent for a drained backend.
	ShareOverTarget *float64 `json:"shareOverTarget,omitempty"`
}

type inspectOptions struct {
	streams  genericiooptions.IOStreams
	source   *sourceFlags
	output   *formatFlag
	features []string
}

func newInspectCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "inspect (RING | --dir DIR | --snapshot FILE)",
		Short:   "Print what a ring is made of and how well it is balanced",
		Long:    inspectLong,
		Example: inspectExample,
	}
	o := &inspectOptions{streams: streams}
	o.source = addSourceFlags(cmd)
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	cmd.Flags().StringSliceVar(&o.features, "features", nil, "show what readers with these features see")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := o.source.chooseOnly(cmd, args)
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), src)
	}
	return cmd
}

func (o *inspectOptions) run(ctx context.Context, src source) error {
	p, err := src.read(ctx, stableRing)
	if err != nil {
		return err
	}
	from, err := p.open()
	if err != nil {
		return err
	}
	view, err := from.view(o.features)
	if err != nil {
		return err
	}
	report := inspect(from, view, o.features)
	return o.output.print(o.streams.Out, report, report.print)
}

func inspect(from *opened, view *ring.View, features []string) *InspectReport {
	report := &InspectReport{Source: from.origin, Ring: from.name(), Revision: from.revision, Snapshot: describeRing(from.ring)}
	if from.file != nil {
		report.Generation = from.file.Generation
	}
	if len(features) > 0 {
		stats := view.Stats()
		features = slices.Compact(slices.Sorted(slices.Values(features)))
		report.View = &ViewReport{
			Features: features, Backends: stats.Backends, Points: stats.Points, Balance: describeBalance(stats),
			Trimmed: slices.ContainsFunc(from.ring.Views(), func(set []string) bool { return slices.Equal(set, features) }),
		}
	}
	shares, points := view.Shares(), view.PointCounts()
	weights := 0.0
	for i := range from.ring.Len() {
		if view.Has(i) {
			weights += float64(from.ring.Weight(i))
		}
	}
	for i := range from.ring.Len() {
		if view.Has(i) || len(features) == 0 {
			report.Backends = append(report.Backends, describeBackend(from, i, points[i], shares[i], weights))
		}
	}
	return report
}

func describeBackend(from *opened, i, points int, share uint64, weights float64) BackendReport {
	r := from.ring
	b := BackendReport{ID: r.ID(i), Address: from.address(i), Weight: r.Weight(i), Zone: r.Zone(i), Points: points}
	for _, name := range r.Features() {
		if r.HasFeature(i, name) {
			b.Features = append(b.Features, name)
		}
	}
	b.Share = round(float64(share)/ring.KeySpace, 9)
	if b.Weight > 0 {
		target := float64(b.Weight) / weights
		b.Target = round(target, 9)
		ratio := round(float64(share)/ring.KeySpace/target, 6)
		b.ShareOverTarget = &ratio
	}
	return b
}

func (r *InspectReport) print(out io.Writer) {
	rows(out, func(w io.Writer) {
		printf(w, "source\t%s\n", r.Source)
		if r.Ring != "" {
			printf(w, "ring\t%s, generation %d\n", r.Ring, r.Generation)
		}
		if r.Revision > 0 {
			printf(w, "revision\t%d\n", r.Revision)
		}
		r.Snapshot.header(w)
	})
	printf(out, "\n")
	rows(out, func(w io.Writer) { r.Snapshot.Balance.table(w, "BALANCE") })
	if r.View != nil {
		untrimmed := ""
		if len(r.Snapshot.Views) > 0 && !r.View.Trimmed {
			untrimmed = ", not declared and so not trimmed"
		}
		printf(out, "\nView %s: %s, %s%s\n", strings.Join(r.View.Features, ","),
			plural(r.View.Backends, "backend", "backends"), plural(r.View.Points, "point", "points"), untrimmed)
		rows(out, func(w io.Writer) { r.View.Balance.table(w, "BALANCE") })
	}
	printf(out, "\n")
	rows(out, r.backendTable)
	if len(r.Snapshot.Warnings) > 0 {
		printf(out, "\n")
		printWarnings(out, r.Snapshot.Warnings)
	}
}

func (r *InspectReport) backendTable(w io.Writer) {
	named := r.Snapshot.Identity == ring.IdentityName.String()
	title := "BACKEND"
	if named {
		title = "BACKEND\tADDRESS"
	}
	printf(w, "%s\tWEIGHT\tZONE\tFEATURES\tPOINTS\tSHARE\tTARGET\tSHARE/TARGET\n", title)
	for _, b := range r.Backends {
		id, ratio := b.ID, "-"
		if named {
			id += "\t" + cmp.Or(b.Address, "-")
		}
		if b.ShareOverTarget != nil {
			ratio = fmt.Sprintf("%.3f", *b.ShareOverTarget)
		}
		printf(w, "%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\n", id, b.Weight, dash(b.Zone), dash(strings.Join(b.Features, ",")),
			b.Points, percent(b.Share, 3), percent(b.Target, 3), ratio)
	}
}
