// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

const sizeLong = `Answer how many points a ring needs: for a ladder of points per unit of weight, how
well the ring is expected to be balanced, how well a plain ring (V2) and a trimmed
one (V3) really are, what 32-bit hashes cost, and how many bytes it takes. At the
end there is an advice for each version.

The backends are those of a manifest, or as many as --backends says, with addresses
from 10.0.0.0:8080 on. The measured columns are of rings that are built for this,
up to 4 million points each; --measure-all builds the larger ones too, which takes
35 bytes of memory a point and its time.

-o png and -o svg draw a chart of the imbalance against the points.`

const sizeExample = `  # How many points do 2048 equal backends need for 5% of imbalance?
  kubectl hashring size --backends 2048 --imbalance 5%

  # The same with weights of 1 to 10 in turn, as a chart
  kubectl hashring size --backends 2048 --weights 1..10 -o svg --out size.svg

  # For the backends of a manifest
  kubectl hashring size -f ring.yaml --imbalance 1%`

// measuredPoints is the size up to which rings are built without --measure-all: the whole ladder takes seconds then.
const measuredPoints = 4 << 20

type sizeOptions struct {
	streams    genericiooptions.IOStreams
	manifest   manifestRef
	backends   int
	weights    string
	unit       int
	points     []int
	imbalance  string
	measureAll bool
	out        string
	output     *formatFlag
}

func newSizeCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &sizeOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "size (--backends N [--weights LIST] | -f FILE)",
		Short:   "Say how many points a ring needs, and what they cost",
		Long:    sizeLong,
		Example: sizeExample,
		Args:    noArguments,
	}
	flags := cmd.Flags()
	flags.IntVar(&o.backends, "backends", 0, fmt.Sprintf("how many backends, 1 to %d", ring.MaxBackends))
	flags.StringVar(&o.weights, "weights", "1", "their weights, taken in turn: a list such as 1,2,5 or a range such as 1..10")
	flags.IntVar(&o.unit, "weight-unit", 1, fmt.Sprintf("the weight that has the points of a rung, as spec.algorithm.weightUnit of V3, 1 to %d", ring.MaxWeight))
	flags.StringVarP(&o.manifest.file, "filename", "f", "", "take the backends of this manifest, - for the standard input")
	flags.StringVar(&o.manifest.name, "name", "", "which HashRing of the manifest, where it has several")
	flags.IntSliceVar(&o.points, "points", sizeLadder, fmt.Sprintf("the ladder: points for each unit of weight, 1 to %d", ring.MaxPointsPerWeight))
	flags.StringVar(&o.imbalance, "imbalance", "5%", "how much a backend may have above its share, 0.0001% to 100% with at most 4 decimals")
	flags.BoolVar(&o.measureAll, "measure-all", false, fmt.Sprintf("build also the rings of more than %d points", measuredPoints))
	flags.StringVar(&o.out, "out", "", "write the result to this file, - for the standard output")
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML, formatCSV, formatPNG, formatSVG)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		limit, err := o.check(cmd)
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), limit)
	}
	return cmd
}

// check returns the wanted imbalance in millionths.
func (o *sizeOptions) check(cmd *cobra.Command) (uint32, error) {
	flags := cmd.Flags()
	fromManifest := o.manifest.file != ""
	switch {
	case fromManifest && (flags.Changed("backends") || flags.Changed("weights") || flags.Changed("weight-unit")):
		return 0, usagef(cmd, "-f has the backends: --backends, --weights and --weight-unit cannot be used with it")
	case !fromManifest && o.manifest.name != "":
		return 0, usagef(cmd, "--name chooses a HashRing of a manifest: it needs -f")
	case !fromManifest && !flags.Changed("backends"):
		return 0, usagef(cmd, "no backends given: --backends says how many, or -f names a manifest")
	case !fromManifest && (o.backends < 1 || o.backends > ring.MaxBackends):
		return 0, usagef(cmd, "--backends is %d, it must be 1 to %d", o.backends, ring.MaxBackends)
	case o.unit < 1 || o.unit > ring.MaxWeight:
		return 0, usagef(cmd, "--weight-unit is %d, it must be 1 to %d", o.unit, ring.MaxWeight)
	case o.output.value == formatPNG && o.out == "" && isTerminal(o.streams.Out):
		return 0, usagef(cmd, "-o png is not for a terminal: redirect it, or --out names a file")
	}
	if len(o.points) == 0 || slices.Min(o.points) < 1 || slices.Max(o.points) > ring.MaxPointsPerWeight {
		return 0, usagef(cmd, "--points is %v, it must be numbers from 1 to %d", o.points, ring.MaxPointsPerWeight)
	}
	if _, err := parseWeights(o.weights); err != nil {
		return 0, usagef(cmd, "%v", err)
	}
	limit, err := parseImbalance(o.imbalance)
	if err != nil {
		return 0, usagef(cmd, "%v", err)
	}
	return limit, nil
}

// isTerminal says whether people would see what is written to out.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// parseImbalance returns millionths.
func parseImbalance(text string) (uint32, error) {
	const perPercent, digits = 10_000, 4 // A millionth is 0.0001 %.
	number, found := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("--imbalance is %q, it must be 0.0001%% to 100%%", text)
	}
	if !found {
		return 0, fmt.Errorf("--imbalance is %q, without a %%: it must be 0.0001%% to 100%%, such as 5%%", text)
	}
	if _, decimals, _ := strings.Cut(number, "."); len(decimals) > digits {
		return 0, fmt.Errorf("--imbalance is %q, it must have at most %d decimals", text, digits)
	}
	x = math.Round(x * perPercent)
	if inRange := x >= 1 && x <= 100*perPercent; !inRange || strings.ContainsAny(number, "xXeE_") { // NaN is in no range.
		return 0, fmt.Errorf("--imbalance is %q, it must be 0.0001%% to 100%%", text)
	}
	return uint32(x), nil
}

// parseWeights returns the weights that are taken in turn.
func parseWeights(text string) ([]uint32, error) {
	wrong := fmt.Errorf("--weights is %q, it must be a list such as 1,2,5 or a range such as 1..10 of numbers from 1 to %d, at most %d of them",
		text, ring.MaxWeight, ring.MaxBackends)
	one := func(s string) (uint32, bool) {
		n, err := strconv.ParseUint(s, 10, 32)
		return uint32(n), err == nil && n >= 1 && n <= ring.MaxWeight
	}
	if low, high, isRange := strings.Cut(text, ".."); isRange {
		from, ok := one(low)
		to, ok2 := one(high)
		if !ok || !ok2 || from > to || to-from >= ring.MaxBackends {
			return nil, wrong
		}
		var list []uint32
		for w := from; w <= to; w++ {
			list = append(list, w)
		}
		return list, nil
	}
	var list []uint32
	for s := range strings.SplitSeq(text, ",") {
		w, ok := one(s)
		if !ok || len(list) == ring.MaxBackends {
			return nil, wrong
		}
		list = append(list, w)
	}
	return list, nil
}

func (o *sizeOptions) run(ctx context.Context, limit uint32) error {
	s := sizing{maxImbalance: limit, measured: measuredPoints, ladder: slices.Compact(slices.Sorted(slices.Values(o.points)))}
	if o.measureAll {
		s.measured = ring.HardMaxPoints
	}
	if err := o.fleet(ctx, &s); err != nil {
		return err
	}
	report, err := s.report(ctx)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	switch o.output.value {
	case formatCSV:
		err = report.csv(&out)
	case formatPNG, formatSVG:
		var curves []sizeCurve
		if curves, err = s.curves(); err == nil {
			err = report.draw(&out, o.output.value, curves)
		}
	default:
		err = o.output.print(&out, report, report.print)
	}
	if err != nil {
		return err
	}
	return o.write(out.Bytes())
}

// write puts the result where --out says.
func (o *sizeOptions) write(result []byte) error {
	if o.out == "" || o.out == "-" {
		_, err := o.streams.Out.Write(result)
		return err
	}
	if err := os.WriteFile(o.out, result, 0o644); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err := fmt.Fprintf(o.streams.Out, "%s: written, %d bytes\n", o.out, len(result))
	return err
}

// fleet sets the backends of a sizing, what they are called and the unit of their weights.
func (o *sizeOptions) fleet(ctx context.Context, s *sizing) error {
	if o.manifest.file == "" {
		weights, err := parseWeights(o.weights)
		if err != nil {
			return err
		}
		s.subject = plural(o.backends, "backend", "backends") + " of weight " + o.weights
		s.config, s.unit = numberedFleet(o.backends, weights), uint32(o.unit)
		return nil
	}
	hashRing, err := o.manifest.load(ctx, o.streams.In)
	if err != nil {
		return err
	}
	subject := "HashRing " + hashRing.Namespace + "/" + hashRing.Name
	if s.config, err = manifestFleet(hashRing); err != nil {
		return fmt.Errorf("%s: %w", subject, err)
	}
	s.subject = fmt.Sprintf("%s, %s", subject, plural(len(s.config.Backends), "backend", "backends"))
	s.unit = uint32(hashRing.Spec.Algorithm.WeightUnit) // The schema has a default, and takes 1 alone for V1 and V2.
	return nil
}

// numberedFleet returns n backends with addresses from 10.0.0.0:8080 on.
func numberedFleet(n int, weights []uint32) ring.Config {
	c := ring.Config{Identity: ring.IdentityAddress}
	for i := range n {
		id := fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255)
		c.Backends = append(c.Backends, ring.Backend{ID: id, Weight: weights[i%len(weights)]})
	}
	return c
}

// manifestFleet returns the backends and features of a manifest. How many points they get is the question here, so the
// ring is resolved with the fewest points: one that is too large to be published can be asked about as well.
func manifestFleet(hashRing *v1alpha1.HashRing) (ring.Config, error) {
	spec := hashRing.Spec
	spec.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV2, PointsPerWeight: 1, WeightUnit: 1}
	spec.Publication = v1alpha1.Publication{}
	desired, err := plan.Build(spec)
	if err != nil {
		return ring.Config{}, err
	}
	r, err := desired.Ring.Open()
	if err != nil {
		return ring.Config{}, err
	}
	return r.Config(), nil
}
