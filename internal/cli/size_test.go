// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/pkg/ring"
)

func sizeOf(t *testing.T, args ...string) SizeReport {
	t.Helper()
	var report SizeReport
	if err := json.Unmarshal([]byte(succeed(t, "", append([]string{"size", "-o", "json"}, args...)...)), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

func TestSizeOutput(t *testing.T) {
	workdir(t, nil)
	for name, args := range map[string][]string{
		"size-table":    {"--backends", "8", "--weights", "1..3", "--imbalance", "2%", "--points", "10,40,160,1000,10000"},
		"size-one":      {"--backends", "1", "--points", "10,1"},
		"size-manifest": {"-f", "edge.yaml", "--points", "10,160"},
		"size-csv":      {"--backends", "8", "-o", "csv", "--points", "10,100,1000"},
		"size-json":     {"--backends", "3", "-o", "json", "--points", "40,100000"},
		"size-yaml":     {"--backends", "3", "-o", "yaml", "--imbalance", "0.5%", "--points", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			assertGolden(t, name, succeed(t, "", append([]string{"size"}, args...)...))
		})
	}
}

// TestSizeMeasuresRealRings: the measured columns are those of rings that anybody can build.
func TestSizeMeasuresRealRings(t *testing.T) {
	report := sizeOf(t, "--backends", "50", "--weights", "2,1", "--imbalance", "3%", "--points", "10,40,80,160,400,1000,60000")
	if report.Backends != 50 || report.Weight != 75 || len(report.Rungs) != 7 {
		t.Fatalf("%d backends of weight %d, %d rungs", report.Backends, report.Weight, len(report.Rungs))
	}
	measured := 0
	for _, rung := range report.Rungs {
		for version, sized := range map[ring.Version]SizedRing{ring.V2: rung.Plain, ring.V3: rung.Trimmed} {
			if small := rung.Points <= min(measuredPoints, most(version)); small != (sized.MaxOverAverage != nil) {
				t.Errorf("%d points: measured %v", rung.Points, !small)
				continue
			}
			if rung.Points > 1e5 {
				continue
			}
			measured++
			c := numberedFleet(50, []uint32{2, 1})
			c.Algorithm = ring.Algorithm{Version: version, PointsPerWeight: uint32(rung.PointsPerWeight)}
			if version == ring.V3 {
				c.Algorithm.WeightUnit, c.Algorithm.MaxImbalance = 1, 30_000
			}
			r, err := ring.Build(c)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Stats().MaxOverAverage; math.Abs(got-*sized.MaxOverAverage) > 1e-6 {
				t.Errorf("%s with %d points: %.6f, reported %.6f", version, rung.PointsPerWeight, got, *sized.MaxOverAverage)
			}
			if got := float64(len(r.Snapshot())); math.Abs(got-float64(sized.Bytes)) > 0.02*got {
				t.Errorf("%s with %d points: %.0f bytes, reported %d", version, rung.PointsPerWeight, got, sized.Bytes)
			}
		}
	}
	if measured < 10 {
		t.Errorf("only %d rings were compared", measured)
	}
}

// TestSizeSaysWhatItDidNotMeasure, and measures it with --measure-all.
func TestSizeSaysWhatItDidNotMeasure(t *testing.T) {
	const note = "1 ring of more than 4194304 points is only predicted: --measure-all builds it too\n"
	out := succeed(t, "", "size", "--backends", "50", "--points", "10,85000")
	wantContains(t, out, note)
	wantContains(t, out, "V1: 5% is not to be expected of its 160 points for each unit of weight, and it has no others: max/avg 1.18")
	wantContains(t, out, "V3: 5% is to be expected with 1")
	if got := sizeOf(t, "--backends", "50", "--points", "10", "--measure-all").MeasuredPoints; got != ring.HardMaxPoints {
		t.Errorf("--measure-all measures up to %d points", got)
	}
}

// TestSizeOfManyPoints: of 2048 backends no number of points reaches 1 % under V2, because of the tie order.
func TestSizeOfManyPoints(t *testing.T) {
	s := sizing{subject: "x", config: numberedFleet(2048, []uint32{1}), maxImbalance: 10_000, ladder: sizeLadder}
	report, err := s.report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantContains(t, report.Advice[1].Message, "1% is not to be expected with any number of points, ")
	if a := report.Advice[2]; !a.Reached || !a.FitsConfigMap || a.PointsPerWeight > 40 {
		t.Errorf("V3: %+v", a)
	}
	last := report.Rungs[len(report.Rungs)-1]
	if last.PointsPerWeight != 100_000 || last.Plain.PredictedMaxOverAverage <= report.Rungs[len(report.Rungs)-2].Plain.PredictedMaxOverAverage {
		t.Errorf("the last rung: %+v", last)
	}
	s.config = numberedFleet(2048, []uint32{1000})
	if report, err = s.report(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(report.Rungs); n == 0 || report.Rungs[n-1].Points > ring.HardMaxPoints {
		t.Errorf("%d rungs for weights of 1000", n)
	}
	if _, err := s.curves(); err != nil {
		t.Error(err)
	}
}

// TestSizeOfAManifestThatIsTooLarge: that is when one asks.
func TestSizeOfAManifestThatIsTooLarge(t *testing.T) {
	workdir(t, map[string]string{"large.yaml": edited(t, edgeManifest, "pointsPerWeight: 16", "pointsPerWeight: 100000")})
	want := sizeOf(t, "-f", "edge.yaml", "--points", "10")
	if diff := cmp.Diff(want, sizeOf(t, "-f", "large.yaml", "--points", "10")); diff != "" {
		t.Errorf("(-edge.yaml +large.yaml):\n%s", diff)
	}
	if want.Backends != 3 || want.Weight != 40 {
		t.Errorf("%d backends of weight %d", want.Backends, want.Weight)
	}
}

func TestSizeCSV(t *testing.T) {
	lines, err := csv.NewReader(strings.NewReader(succeed(t, "", "size", "--backends", "50", "-o", "csv", "--points", "160,100000"))).ReadAll()
	if err != nil || len(lines) != 3 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if last := lines[len(lines)-1]; last[0] != "100000" || last[6] != "" || last[5] == "" {
		t.Errorf("a ring that was not measured: %q", last)
	}
}

// TestSizeChartIsDeterministic in both formats: the same question gives the same bytes, another one others.
func TestSizeChartIsDeterministic(t *testing.T) {
	t.Chdir(t.TempDir())
	draw := func(format, imbalance string) []byte {
		out := succeed(t, "", "size", "--backends", "20", "--points", "10,100,1000", "-o", format, "--out", "chart", "--imbalance", imbalance)
		data := []byte(read(t, "chart"))
		if want := fmt.Sprintf("chart: written, %d bytes\n", len(data)); out != want {
			t.Errorf("printed %q, want %q", out, want)
		}
		return data
	}
	for _, format := range []string{"png", "svg"} {
		first := draw(format, "5%")
		if !bytes.Equal(first, draw(format, "5%")) {
			t.Errorf("%s: the second time it is another one", format)
		}
		if bytes.Equal(first, draw(format, "2%")) {
			t.Errorf("%s: another limit gives the same", format)
		}
	}
}

// TestSizeChart shows what it has to: its words in the SVG, its colours in the PNG.
func TestSizeChart(t *testing.T) {
	args := []string{"size", "--backends", "300", "--points", "10,40,160,10000,100000"}
	svg := succeed(t, "", append(args, "-o", "svg")...)
	for _, want := range []string{
		"<svg", "How evenly a ring is balanced: 300 backends of weight 1", "points for each unit of weight (logarithmic)",
		"busiest backend above its share (%)", "100,000", "wanted: 5%", "one ConfigMap is full", "The last 90,000 points",
		"what 32-bit collisions and the order of ties add", "plain ring (V2), expected", "plain ring, measured",
		"trimmed ring (V3), expected", "trimmed ring, measured", "points at random places, expected",
	} {
		wantContains(t, svg, want)
	}
	image, err := png.Decode(strings.NewReader(succeed(t, "", append(args, "-o", "png", "--out", "-")...)))
	if err != nil {
		t.Fatal(err)
	}
	if size := image.Bounds().Size(); size.X != 1417 || size.Y != 850 {
		t.Errorf("it is %v", size)
	}
	colours := map[string]int{}
	for y := range image.Bounds().Dy() {
		for x := range image.Bounds().Dx() {
			r, g, b, _ := image.At(x, y).RGBA()
			colours[fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)]++
		}
	}
	for name, colour := range map[string]string{"orange": "d55e00", "blue": "0072b2", "band": "f4f4f4", "white": "ffffff"} {
		if colours[colour] < 500 {
			t.Errorf("%d pixels are %s", colours[colour], name)
		}
	}
	wantContains(t, fail(t, ExitFailure, "size", "--backends", "1", "--points", "1", "-o", "svg"), "a ring of one backend has no imbalance to draw")
	wantContains(t, fail(t, ExitFailure, "size", "--backends", "2", "--points", "1", "-o", "svg"), "a chart needs at least two numbers of points")
}

func TestSizeRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "edge.yaml", edgeManifest)
	write(t, "drained.yaml", strings.NewReplacer("weight: 10", "weight: 0", "weight: 20", "weight: 0").Replace(edgeManifest))
	for want, args := range map[string][]string{
		"no backends given":                                       {},
		"--backends is 0, it must be 1 to 65536":                  {"--backends", "0"},
		"--backends is 65537, it must be 1 to 65536":              {"--backends", "65537"},
		"-f has the backends: --backends, --weights and --weight": {"--backends", "3", "-f", "edge.yaml"},
		"--weight-unit cannot be used with it":                    {"--weight-unit", "3", "-f", "edge.yaml"},
		"--weight-unit is 0, it must be 1 to 1000000":             {"--backends", "3", "--weight-unit", "0"},
		"--weight-unit is 1000001, it must be 1 to":               {"--backends", "3", "--weight-unit", "1000001"},
		"--name chooses a HashRing of a manifest":                 {"--backends", "3", "--name", "x"},
		`--weights is "0", it must be a list`:                     {"--backends", "3", "--weights", "0"},
		`--weights is "5..2", it must be a list`:                  {"--backends", "3", "--weights", "5..2"},
		`--weights is "1,,2", it must be a list`:                  {"--backends", "3", "--weights", "1,,2"},
		`--weights is "1..1000001", it must be`:                   {"--backends", "3", "--weights", "1..1000001"},
		`--imbalance is "5", without a %: it must be 0.0001% to`:  {"--backends", "3", "--imbalance", "5"},
		`--imbalance is "0.05", without a %: `:                    {"--backends", "3", "--imbalance", "0.05"},
		`--imbalance is "1.23456%", it must have at most 4 dec`:   {"--backends", "3", "--imbalance", "1.23456%"},
		`--imbalance is "0.00001%", it must have at most 4 dec`:   {"--backends", "3", "--imbalance", "0.00001%"},
		`--imbalance is "1e-3%", it must be 0.0001% to 100%`:      {"--backends", "3", "--imbalance", "1e-3%"},
		`--imbalance is "five", it must be 0.0001% to 100%`:       {"--backends", "3", "--imbalance", "five"},
		`--imbalance is "0%", it must be`:                         {"--backends", "3", "--imbalance", "0%"},
		`--imbalance is "100.1%", it must be`:                     {"--backends", "3", "--imbalance", "100.1%"},
		`--imbalance is "NaN%", it must be`:                       {"--backends", "3", "--imbalance", "NaN%"},
		"--points is [0 5], it must be numbers from 1 to 100000":  {"--backends", "3", "--points", "0,5"},
		"--points is [100001], it must be numbers":                {"--backends", "3", "--points", "100001"},
		"must be table, json, yaml, csv, png or svg":              {"--backends", "3", "-o", "tsv"},
		`unexpected argument "x"`:                                 {"--backends", "3", "x"},
	} {
		wantContains(t, fail(t, ExitUsage, append([]string{"size"}, args...)...), want)
	}
	wantContains(t, fail(t, ExitFailure, "size", "-f", "drained.yaml"), "HashRing cdn/edge: spec.backends: none of 4 backends has a weight above 0")
	wantContains(t, fail(t, ExitFailure, "size", "-f", "nope.yaml"), "nope.yaml: no such file")
	wantContains(t, fail(t, ExitFailure, "size", "--backends", "1", "--points", "1", "--out", "no/such/directory"), "--out: open no/such/directory: ")
	if _, err := os.Stat("no"); !os.IsNotExist(err) {
		t.Error("something was made")
	}
}

func TestSizeTakesImbalances(t *testing.T) {
	for text, want := range map[string]uint32{"0.0001%": 1, "1.2345%": 12_345, "5%": 50_000, "2.50%": 25_000, "100%": 1_000_000} {
		if got, err := parseImbalance(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}
