// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/crdschema"
)

const migrationPlanLong = `Say what a migration will do: its stages and steps with the earliest time at which each
can be complete, the keys that move at each, what both rings take in a reader's
memory, and the datacenters that have consumers and that no stage takes.

The migration is one of the cluster, or a manifest, which is then seen against the
HashRings of the cluster.

With --rate also how many requests more go to the origins right after each step. The
model: a key that moves to another backend misses there once. Of the requests of a
datacenter, the part whose share the step adds, times the movement of the candidate,
times the hit ratio, are such misses at first: rate x added share x movement x hit
ratio. That decays as the caches warm up. Without --hit-ratio it is 100%, the worst
case. With several HashRings it is the largest of their movements.

It takes permission to get RingMigrations and HashRings, and with a ringSelector to
list HashRings.`

const migrationPlanExample = `  # What will it do?
  kubectl hashring migration plan v1-to-v3 -n cdn

  # A manifest, with the requests per second of each datacenter, and those of one
  kubectl hashring migration plan -f migration.yaml --rate 2000 --rate lab01=50 --hit-ratio 95%`

type migrationPlanOptions struct {
	streams  genericiooptions.IOStreams
	file     string
	only     string
	rates    []string
	hitRatio string
	output   *formatFlag
	config   *genericclioptions.ConfigFlags
	load     load
}

// load is what the model of origin requests takes.
type load struct {
	given bool
	// rate is that of a datacenter without one of its own, in requests per second.
	rate     float64
	rates    map[string]float64
	hitRatio float64
}

func newMigrationPlanCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &migrationPlanOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "plan (NAME | -f FILE)",
		Short:   "Say what a migration will move, when, and what that costs",
		Long:    migrationPlanLong,
		Example: migrationPlanExample,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.file == "":
				return oneMigration(cmd, args)
			case len(args) > 0:
				return usagef(cmd, "unexpected argument %q: -f says which migration; --name chooses one of several", args[0])
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "manifest of the RingMigration, - for the standard input")
	flags.StringVar(&o.only, "name", "", "which RingMigration of the manifest, where it has several")
	flags.StringArrayVar(&o.rates, "rate", nil, "requests per second of each datacenter, or as DATACENTER=RATE of one")
	flags.StringVar(&o.hitRatio, "hit-ratio", "100%", "part of the requests that caches answer, 0% to 100%")
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if o.load, err = parseLoad(o.rates, o.hitRatio); err != nil {
			return usagef(cmd, "%v", err)
		}
		if o.only != "" && o.file == "" {
			return usagef(cmd, "--name chooses a RingMigration of a manifest: it needs -f")
		}
		live, err := newLiveMigration(o.config, strings.Join(args, ""))
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), live)
	}
	return cmd
}

// parseLoad reads --rate and --hit-ratio.
func parseLoad(rates []string, hitRatio string) (load, error) {
	l := load{given: len(rates) > 0, rates: map[string]float64{}}
	for _, text := range rates {
		name, number, own := strings.Cut(text, "=")
		if !own {
			name, number = "", text
		}
		rate, err := strconv.ParseFloat(number, 64)
		if err != nil || math.IsInf(rate, 0) || !(rate >= 0) || own && name == "" {
			return load{}, fmt.Errorf("--rate is %q, it must be a number of requests per second, at least 0, or DATACENTER=RATE", text)
		}
		if own {
			l.rates[name] = rate
		} else {
			l.rate = rate
		}
	}
	number, isPercent := strings.CutSuffix(hitRatio, "%")
	ratio, err := strconv.ParseFloat(number, 64)
	if err != nil || !isPercent || !(ratio >= 0 && ratio <= 100) {
		return load{}, fmt.Errorf("--hit-ratio is %q, it must be 0%% to 100%%, such as 95%%", hitRatio)
	}
	l.hitRatio = ratio / 100
	return l, nil
}

func (o *migrationPlanOptions) run(ctx context.Context, live liveMigration) error {
	object, err := o.migration(ctx, live)
	if err != nil {
		return err
	}
	rings, notes := ringsOf(ctx, live.client, object)
	report, err := planMigration(migrationView{object}, rings, o.load)
	if err != nil {
		return err
	}
	report.Notes = append(notes, report.Notes...)
	return o.output.print(o.streams.Out, report, report.print)
}

// migration reads the migration from the cluster or the manifest.
func (o *migrationPlanOptions) migration(ctx context.Context, live liveMigration) (*v1alpha1.RingMigration, error) {
	if o.file == "" {
		return live.get(ctx)
	}
	found, err := migrationManifests(o.file, o.only, o.streams.In)
	if err != nil {
		return nil, err
	}
	if len(found) > 1 {
		names := make([]string, len(found))
		for i, m := range found {
			names[i] = m.GetName()
		}
		return nil, fmt.Errorf("%s has %d RingMigrations: choose one by --name: %s", o.file, len(found), strings.Join(names, ", "))
	}
	object, err := admitMigration(ctx, found[0], live.namespace)
	var rejection *crdschema.Rejection
	if errors.As(err, &rejection) {
		return nil, fmt.Errorf("%s %s is invalid: %w; \"migration lint -f %s\" lists everything", migrationKind, found[0].GetName(), err, o.file)
	}
	return object, err
}

// ringsOf returns the HashRings that a migration moves, in the order of their names. What cannot be read is said in notes: the plan is
// worth something without them.
func ringsOf(ctx context.Context, c client.Reader, m *v1alpha1.RingMigration) (rings []v1alpha1.HashRing, notes []string) {
	if m.Spec.RingRef == nil && len(m.Status.Rings) == 0 {
		selector, err := metav1.LabelSelectorAsSelector(m.Spec.RingSelector)
		list := &v1alpha1.HashRingList{}
		if err == nil {
			err = c.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabelsSelector{Selector: selector})
		}
		switch {
		case err != nil:
			return nil, []string{fmt.Sprintf("the HashRings of spec.ringSelector cannot be listed: %v", err)}
		case len(list.Items) == 0:
			return nil, []string{"spec.ringSelector selects no HashRing"}
		}
		slices.SortFunc(list.Items, func(a, b v1alpha1.HashRing) int { return strings.Compare(a.Name, b.Name) })
		return list.Items, nil
	}
	for _, name := range (migrationView{m}).ringNames() {
		hashRing := v1alpha1.HashRing{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, &hashRing); err != nil {
			notes = append(notes, fmt.Sprintf("HashRing %s/%s cannot be read, so that nothing is said about it: %v", m.Namespace, name, err))
			continue
		}
		rings = append(rings, hashRing)
	}
	return rings, notes
}
