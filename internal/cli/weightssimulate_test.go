// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"strings"
	"testing"
)

func TestWeightsSimulateOutput(t *testing.T) {
	for name, args := range map[string][]string{
		"weights-simulate-list":      {"--list"},
		"weights-simulate-list-json": {"--list", "-o", "json"},
		"weights-simulate-table":     {"--duration", "3m"},
		"weights-simulate-remarks":   {"--scenario", "mute-majority", "--duration", "5m"},
		"weights-simulate-ring":      {"--scenario", "ring", "--duration", "20m", "--endpoints", "12"},
		"weights-simulate-json":      {"--duration", "1m", "--endpoints", "6", "-o", "json", "--loss", "20%", "--report-delay", "5s", "--metric", "Max"},
		"weights-simulate-yaml":      {"--duration", "1m", "--endpoints", "6", "-o", "yaml", "--profile", "Cautious", "--seed", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assertGolden(t, name, succeed(t, "", append([]string{"weights", "simulate"}, args...)...))
		})
	}
}

func TestWeightsSimulateRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		`--scenario is "nothing", there is no such scenario: --list prints them`:                           {"--scenario", "nothing"},
		`--profile is "fast", it must be one of Balanced, Cautious, Fast, Ring, Custom`:                    {"--profile", "fast"},
		`metric is "Memory", it must be CPU, InFlight, Max or Custom`:                                      {"--metric", "Memory"},
		"duration is 59s, it must be from 1m0s to 24h0m0s":                                                 {"--duration", "59s"},
		"duration is 24h0m1s, it must be from 1m0s to 24h0m0s":                                             {"--duration", "24h0m1s"},
		"endpoints is 1, it must be from 2 to 5000":                                                        {"--endpoints", "1"},
		"endpoints is 5001, it must be from 2 to 5000":                                                     {"--endpoints", "5001"},
		"endpoints is 5000 and duration is 24h0m0s: together they must be at most 50000000 server-seconds": {"--endpoints", "5000", "--duration", "24h"},
		"report delay is -1s, it must be from 0s to 10m0s":                                                 {"--report-delay", "-1s"},
		"report delay is 11m0s, it must be from 0s to 10m0s":                                               {"--report-delay", "11m"},
		`--loss is "20", it must be 0% to 99%`:                                                             {"--loss", "20"},
		`--loss is "99.5%", it must be 0% to 99%`:                                                          {"--loss", "99.5%"},
		`--loss is "NaN%", it must be 0% to 99%`:                                                           {"--loss", "NaN%"},
		`--chart is "x.gif", its name must end in .png or .svg`:                                            {"--chart", "x.gif"},
		`unexpected argument "now"`:                                                                        {"now"},
	} {
		wantContains(t, fail(t, ExitUsage, append([]string{"weights", "simulate"}, args...)...), want)
	}
	wantContains(t, fail(t, ExitUsage, "weights", "guess"), `unknown command "guess"`)
	wantContains(t, fail(t, ExitFailure, "weights", "simulate", "--duration", "1m", "--chart", "no/such/place.png"), "--chart: open no/such/place.png")
}

// TestWeightsSimulateChart: the picture can be read, has the same bytes again, and names what it shows.
func TestWeightsSimulateChart(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{"a.png", "b.png", "c.svg"} {
		succeed(t, "", "weights", "simulate", "--scenario", "stalled-disk", "--duration", "6m", "--endpoints", "10", "--chart", file)
	}
	if read(t, "a.png") != read(t, "b.png") {
		t.Error("another time the chart has other bytes")
	}
	data, err := os.ReadFile("a.png")
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X != 1417 || size.Y != 850 {
		t.Errorf("the picture has %v", size)
	}
	drawn := read(t, "c.svg")
	for _, text := range []string{"busiest server", "95th percentile", "average", "5th percentile", "utilisation", "weights", "the disk stalls", "stalled-disk"} {
		wantContains(t, drawn, ">"+text)
	}
}

// TestWeightsSimulateFlagsMatter: each of them changes the run.
func TestWeightsSimulateFlagsMatter(t *testing.T) {
	simulate := func(args ...string) string {
		return succeed(t, "", append([]string{"weights", "simulate", "--duration", "2m", "-o", "json"}, args...)...)
	}
	plain := simulate()
	if plain != simulate("--seed", "1") {
		t.Error("the same seed is another run")
	}
	for _, args := range []string{"--seed 2", "--profile Fast", "--metric InFlight", "--endpoints 30", "--report-delay 10s", "--loss 50%", "--scenario equal"} {
		if simulate(strings.Fields(args)...) == plain {
			t.Errorf("%s changes nothing", args)
		}
	}
	var report SimulationReport
	if err := json.Unmarshal([]byte(plain), &report); err != nil {
		t.Fatal(err)
	}
	first, last := report.Rows[0].MaxOverAverage, report.Rows[len(report.Rows)-1].MaxOverAverage
	if first < 1.3 || last > 1.03 {
		t.Errorf("max/avg from %.3f to %.3f", first, last)
	}
}

// TestWeightsSimulateDocs: the examples in the documentation print what it says.
func TestWeightsSimulateDocs(t *testing.T) {
	blocks := strings.Split(read(t, "../../docs/weights-simulate.md"), "```console\n$ kubectl hashring ")[1:]
	if len(blocks) < 4 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, block := range blocks {
		shown, _, _ := strings.Cut(block, "```\n")
		command, want, _ := strings.Cut(shown, "\n")
		if got := succeed(t, "", strings.Fields(command)...); got != want {
			t.Errorf("%s prints\n%s\nthe documentation says\n%s", command, got, want)
		}
	}
}
