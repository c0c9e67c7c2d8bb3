// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// TestSizeKeepsToWhatTheOperatorBuilds: a V3 ring of more than plan.MaxTrimmedPoints points is no advice, nor any of more than
// plan.MaxPoints.
func TestSizeKeepsToWhatTheOperatorBuilds(t *testing.T) {
	s := sizing{subject: "x", config: numberedFleet(2048, []uint32{1}), maxImbalance: 100, ladder: []int{512, 513}}
	report, err := s.report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Rungs[0].Trimmed.Refused || !report.Rungs[1].Trimmed.Refused || report.Rungs[1].Plain.Refused {
		t.Errorf("512 points each are the limit: %+v", report.Rungs)
	}
	if a := report.Advice[2]; a.PointsPerWeight != 512 || a.Points != plan.MaxTrimmedPoints || a.Reached {
		t.Errorf("V3: %+v", a)
	}
	wantContains(t, report.Advice[2].Message, "0.01% is not to be expected within the 1,048,576 points that the operator trims; "+
		"the best within them is 512 points for each unit of weight: max/avg ")
	var text strings.Builder
	report.print(&text)
	wantContains(t, text.String(), "1 rung with more than the 1,048,576 points that the operator trims: no V3\n")
	if line := strings.Fields(strings.SplitAfter(text.String(), "\n513 ")[1]); line[4] != "-" || line[5] != "-" {
		t.Errorf("the rung of 513 points: %q", line)
	}
	curves, err := s.curves()
	if last := len(curves) - 1; err != nil || math.IsNaN(curves[0].trimmed) || !math.IsNaN(curves[last].trimmed) {
		t.Errorf("the curve of V3 does not end at the limit: %v", err)
	}
	heavy := sizing{subject: "x", config: numberedFleet(2048, []uint32{1000}), maxImbalance: 50_000, ladder: []int{1, 200}}
	if report, err = heavy.report(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantContains(t, report.Advice[0].Message, "not to be had: 160 points for each unit of weight are 327,680,000 in all, the operator builds at most 268,435,456")
	wantContains(t, report.Advice[2].Message, "not to be had: 1 point for each unit of weight are 2,048,000 in all, the operator trims at most 1,048,576")
	if !report.Rungs[1].Plain.Refused {
		t.Error("409,600,000 points are not refused")
	}
}

// TestSizeOfWeightsInAUnit: disks of 625 GB with a unit of 625 are sized as backends of weight 1, under every version.
func TestSizeOfWeightsInAUnit(t *testing.T) {
	const args = "--points 10,40 --imbalance 2% --backends"
	want := sizeOf(t, append(strings.Fields(args), "8", "--weights", "1,2")...)
	got := sizeOf(t, append(strings.Fields(args), "8", "--weights", "625,1250", "--weight-unit", "625")...)
	// The length differs by that of the weights, and messages speak of it.
	opts := cmp.FilterPath(func(p cmp.Path) bool {
		name := p.Last().String()
		return name == ".Bytes" || name == ".RecipeBytes" || name == ".Message"
	}, cmp.Ignore())
	if diff := cmp.Diff(want.Rungs, got.Rungs, opts); diff != "" {
		t.Errorf("rungs (-of 1 +of 625):\n%s", diff)
	}
	if diff := cmp.Diff(want.Advice, got.Advice, opts); diff != "" {
		t.Errorf("advice (-of 1 +of 625):\n%s", diff)
	}
	wantContains(t, got.Advice[2].Message, " points for a weight of 625: max/avg ")
	if got.WeightUnit != 625 || got.Weight != 8*(625+1250)/2 || want.WeightUnit != 1 {
		t.Errorf("unit %d, weight %d; unit %d", got.WeightUnit, got.Weight, want.WeightUnit)
	}
}

// TestSizeOfAManifestWithAUnit: what V3 is said to have is what "build" makes of it.
func TestSizeOfAManifestWithAUnit(t *testing.T) {
	const disks = `  algorithm: {version: V3, pointsPerWeight: 40, weightUnit: 625, maxImbalance: 2%}
  backends:
  - {name: c1, address: 10.0.0.1, port: 8080, weight: 625}
  - {name: c2, address: 10.0.0.2, port: 8080, weight: 1000}
  - {name: c3, address: 10.0.0.3, port: 8080, weight: 100}
`
	workdir(t, map[string]string{"disks.yaml": shardsManifest[:strings.Index(shardsManifest, "  identity")] + disks})
	assertGolden(t, "size-unit", succeed(t, "", "size", "-f", "disks.yaml", "--points", "40,100", "--imbalance", "2%"))
	succeed(t, "", "build", "-f", "disks.yaml", "-o", "disks")
	built, err := ring.Open([]byte(read(t, "disks/ring-a.snap")))
	if err != nil {
		t.Fatal(err)
	}
	trimmed := sizeOf(t, "-f", "disks.yaml", "--points", "40", "--imbalance", "2%").Rungs[0].Trimmed
	if want := round(built.Stats().MaxOverAverage, 6); *trimmed.MaxOverAverage != want {
		t.Errorf("max/avg %f, built %f", *trimmed.MaxOverAverage, want)
	}
	for weight, want := range map[uint32]uint32{0: 0, 1: 1, 312: 1, 937: 1, 938: 2, 1250: 2} {
		s := sizing{unit: 625, config: ring.Config{Backends: []ring.Backend{{ID: "a", Weight: weight}}}}
		if got := s.with(ring.V2, 1).Backends[0].Weight; got != want {
			t.Errorf("%d has %d units, want %d", weight, got, want)
		}
	}
}

func TestSizeSaysWhatItLeavesOut(t *testing.T) {
	args := []string{"--backends", "80", "--weights", "625", "--points", "20,42949,42950,50000"}
	wantContains(t, succeed(t, "", append([]string{"size"}, args...)...),
		"left out: 42950, 50000. A ring has at most 2,147,483,647 points, with 42950 it would have 2,147,500,000\n")
	report := sizeOf(t, args...)
	want := []LeftOutRung{{42950, 2_147_500_000}, {50_000, 2_500_000_000}}
	if diff := cmp.Diff(want, report.LeftOut); diff != "" || len(report.Rungs) != 2 {
		t.Errorf("%d rungs, left out (-want +got):\n%s", len(report.Rungs), diff)
	}
	// In units V2 has 20,000 × 100,000 points here, V3 half as many again, which no ring has.
	s := sizing{subject: "x", unit: 100, config: numberedFleet(20_000, []uint32{149}), maxImbalance: 50_000, ladder: []int{1, 100_000}}
	report2, err := s.report(t.Context())
	if err != nil || len(report2.Rungs) != 2 || !report2.Rungs[1].Trimmed.Refused {
		t.Errorf("%+v, %v", report2, err)
	}
	if curves, err := s.curves(); err != nil || !math.IsNaN(curves[len(curves)-1].trimmed) {
		t.Error("the curve of V3 goes on", err)
	}
}

// TestSizeSaysHowARingIsPublished at the limits of ConfigMaps and chunks.
func TestSizeSaysHowARingIsPublished(t *testing.T) {
	for name, test := range map[string]struct {
		ring        SizedRing
		word, bytes string
	}{
		"one":       {SizedRing{Bytes: 1 << 20}, "1 ConfigMap", "1048576 bytes in 1 ConfigMap"},
		"two":       {SizedRing{Bytes: 1<<20 + 1}, "2 chunks", "1048577 bytes in 2 chunks"},
		"sixteen":   {SizedRing{Bytes: 16 << 20}, "16 chunks", "16777216 bytes in 16 chunks"},
		"seventeen": {SizedRing{Bytes: 16<<20 + 1, RecipeBytes: 36_904}, "recipe, 37 kB", "16777217 bytes, too many for 16 chunks: recipe, 37 kB"},
		"backends":  {SizedRing{Bytes: 1 << 30, RecipeBytes: 1<<20 + 1}, "recipe, 1.0 MB in 2 chunks", "1073741824 bytes, too many for 16 chunks: recipe, 1.0 MB in 2 chunks"},
	} {
		test.ring.publish()
		if word, bytes := test.ring.publishedText(), test.ring.bytesText(); word != test.word || bytes != test.bytes {
			t.Errorf("%s: %q, %q", name, word, bytes)
		}
	}
	if got := (SizedRing{Refused: true}).publishedText(); got != "refused" {
		t.Errorf("refused: %q", got)
	}
	out := succeed(t, "", "size", "--backends", "2048", "--points", "40,160,10000,100000", "--imbalance", "5%")
	for _, want := range []string{" 1 ConfigMap\n", " 2 chunks\n", " recipe, 36 kB\n", "has to allow", " bytes, too many for 16 chunks: recipe, 36 kB\n"} {
		wantContains(t, out, want)
	}
}

// TestSizeKeepsPNGFromTerminals, and writes it to anything else.
func TestSizeKeepsPNGFromTerminals(t *testing.T) {
	args := []string{"size", "--backends", "3", "--points", "1,10", "-o", "png"}
	path := filepath.Join(t.TempDir(), "x.png")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if code := Main(t.Context(), args, genericiooptions.IOStreams{Out: file, ErrOut: io.Discard}); code != ExitOK {
		t.Errorf("to a file: exit code %d", code)
	}
	if image := read(t, path); !strings.HasPrefix(image, "\x89PNG") || image != succeed(t, "", args...) {
		t.Error("the file has another image than a pipe")
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals: ", err)
	}
	defer terminal.Close()
	var errOut strings.Builder
	code := Main(t.Context(), args, genericiooptions.IOStreams{Out: terminal, ErrOut: &errOut})
	if want := "-o png is not for a terminal: redirect it, or --out names a file"; code != ExitUsage || !strings.Contains(errOut.String(), want) {
		t.Errorf("to a terminal: exit code %d, %q", code, errOut.String())
	}
}

// TestSizeChartShowsWhatThereIs: few backends have no ties to see, and where the operator builds no 100,000 points each there is no
// box that praises them. The line of the full ConfigMap ends below the text of the box.
func TestSizeChartShowsWhatThereIs(t *testing.T) {
	draw := func(args ...string) string {
		return succeed(t, "", append([]string{"size", "--points", "10,10000,100000", "-o", "svg"}, args...)...)
	}
	const ties, box = "what 32-bit collisions", "The last 90,000 points"
	few, many := draw("--backends", "12"), draw("--backends", "300")
	if strings.Contains(few, ties) || !strings.Contains(few, box) || !strings.Contains(few, "one ConfigMap is full") {
		t.Error("12 backends: the legend has ties, or there is no box, or no line")
	}
	if !strings.Contains(many, ties) || !strings.Contains(many, box) {
		t.Error("300 backends: no ties or no box")
	}
	if heavy := draw("--backends", "12", "--weights", "300"); strings.Contains(heavy, box) || !strings.Contains(heavy, ties) {
		t.Error("360 million points are refused: there is a box, or no ties")
	}
	for x, want := range map[float64]vg.Length{9_000: 0, 25_000: boxText, 100_000: 0} {
		if got := (&sizeChart{boxed: true}).headroom(x); got != want {
			t.Errorf("headroom at %.0f is %v", x, got)
		}
		if got := (&sizeChart{}).headroom(x); got != 0 {
			t.Errorf("headroom at %.0f without a box is %v", x, got)
		}
	}
}
