// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/ringwright/ringwright/internal/balance/sim"
)

// SimulationReport is what a simulation of weights found.
type SimulationReport struct {
	Scenario    string `json:"scenario"`
	Description string `json:"description"`
	Seed        uint64 `json:"seed"`
	Endpoints   int    `json:"endpoints"`
	Metric      string `json:"metric"`
	// DurationSeconds is how long was simulated.
	DurationSeconds int             `json:"durationSeconds"`
	Rows            []SimulationRow `json:"rows"`
	Requests        int64           `json:"requests"`
	Failed          int64           `json:"failed"`
	// Publications is how often clients were told weights, Moved which part of the traffic, or of a ring's keys, changed servers.
	Publications int     `json:"publications"`
	Moved        float64 `json:"moved"`
}

// SimulationRow is some seconds of a simulation. Ratios are of the utilisation that servers really had to its average.
type SimulationRow struct {
	FromSeconds    int     `json:"fromSeconds"`
	ToSeconds      int     `json:"toSeconds"`
	MaxOverAverage float64 `json:"maxOverAverage"`
	P95OverAverage float64 `json:"p95OverAverage"`
	P5OverAverage  float64 `json:"p5OverAverage"`
	Average        float64 `json:"average"`
	MinWeight      float64 `json:"minWeight"`
	MaxWeight      float64 `json:"maxWeight"`
	Requests       int64   `json:"requests"`
	Failed         int64   `json:"failed"`
	// Predicted and NoiseFloor are what the controller says; they are left out where it has nothing to say.
	PredictedMaxOverAverage *float64 `json:"predictedMaxOverAverage,omitempty"`
	NoiseFloor              *float64 `json:"noiseFloor,omitempty"`
	Skipped                 string   `json:"skipped,omitempty"`
	Cold                    int      `json:"cold,omitempty"`
	Guarded                 int      `json:"guarded,omitempty"`
	Clamped                 int      `json:"clamped,omitempty"`
	Silent                  int      `json:"silent,omitempty"`
	Doubted                 int      `json:"doubted,omitempty"`
	Ignored                 bool     `json:"ignored,omitempty"`
}

// mostSimulationRows is how many lines a table has at most.
const mostSimulationRows = 30

// simulationStep returns the time of a row: a round one.
func simulationStep(duration time.Duration) time.Duration {
	steps := []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute}
	for _, step := range steps {
		if duration <= mostSimulationRows*step {
			return step
		}
	}
	return time.Hour
}

func newSimulationReport(r *sim.Run) *SimulationReport {
	s := r.Scenario
	report := &SimulationReport{
		Scenario: s.Name, Description: s.Description, Seed: r.Seed, Endpoints: s.Endpoints, Metric: string(s.Config.Metric),
		DurationSeconds: seconds(s.Duration), Requests: int64(r.Requests), Failed: int64(math.Round(r.Failed)),
		Publications: r.Published, Moved: round(r.Moved, 4),
	}
	for _, row := range r.Rows(simulationStep(s.Duration)) {
		c := row.Controller
		report.Rows = append(report.Rows, SimulationRow{
			FromSeconds: seconds(row.From), ToSeconds: seconds(row.To),
			MaxOverAverage: round(row.MaxOverAverage, 3), P95OverAverage: round(row.P95OverAverage, 3), P5OverAverage: round(row.P5OverAverage, 3),
			Average: round(row.Average, 3), MinWeight: round(row.Weights.Min, 3), MaxWeight: round(row.Weights.Max, 3),
			Requests: int64(row.Requests), Failed: int64(math.Round(row.Failed)),
			PredictedMaxOverAverage: known(c.PredictedMaxOverAverage), NoiseFloor: known(c.NoiseFloor), Skipped: string(c.Skipped),
			Cold: c.Cold, Guarded: c.Guarded, Clamped: c.Clamped, Silent: c.Silent, Doubted: c.Doubted, Ignored: c.Ignored,
		})
	}
	return report
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// known returns nil for what is not known.
func known(x float64) *float64 {
	if math.IsNaN(x) || x == 0 {
		return nil
	}
	x = round(x, 3)
	return &x
}

// print writes the table.
func (r *SimulationReport) print(out io.Writer) {
	printf(out, "%s: %s\n%s, %s, seed %d\n\n", r.Scenario, r.Description, plural(r.Endpoints, "server", "servers"),
		durationText(time.Duration(r.DurationSeconds)*time.Second), r.Seed)
	rows(out, func(w io.Writer) {
		printf(w, "TIME\tMAX/AVG\tP95/AVG\tP5/AVG\tAVERAGE\tWEIGHTS\tFAILED\tCONTROLLER\n")
		for _, row := range r.Rows {
			printf(w, "%s\t%.3f\t%.3f\t%.3f\t%s\t%.3f to %.3f\t%d\t%s\n", clock(row.ToSeconds), row.MaxOverAverage, row.P95OverAverage, row.P5OverAverage,
				percent(row.Average, 1), row.MinWeight, row.MaxWeight, row.Failed, dash(row.remarks()))
		}
	})
	printf(out, "\n%d of %d requests failed; weights were published %s and moved %s of all %s\n", r.Failed, r.Requests,
		plural(r.Publications, "time", "times"), percent(r.Moved, 1), r.moves())
}

// moves names what a ring moves.
func (r *SimulationReport) moves() string {
	if s, _ := sim.Find(r.Scenario); s.Ring {
		return "keys"
	}
	return "traffic"
}

// durationText prints a duration in whole minutes where it has such.
func durationText(d time.Duration) string {
	if d%time.Minute == 0 {
		return plural(int(d/time.Minute), "minute", "minutes")
	}
	return d.String()
}

// clock prints seconds as minutes and seconds.
func clock(seconds int) string { return fmt.Sprintf("%d:%02d", seconds/60, seconds%60) }

// remarks says what the controller did not do, or noticed.
func (row SimulationRow) remarks() string {
	var list []string
	if row.Skipped != "" {
		list = append(list, "skipped: "+row.Skipped)
	}
	if row.Ignored {
		list = append(list, "weights ignored")
	}
	for _, c := range []struct {
		n    int
		name string
	}{{row.Silent, "silent"}, {row.Cold, "cold"}, {row.Guarded, "guarded"}, {row.Clamped, "clamped"}, {row.Doubted, "doubted"}} {
		if c.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", c.n, c.name))
		}
	}
	return strings.Join(list, ", ")
}

// SimulationScenario is a scenario that can be simulated.
type SimulationScenario struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

func (o *weightsSimulateOptions) printScenarios() error {
	var list []SimulationScenario
	for _, s := range sim.Scenarios() {
		list = append(list, SimulationScenario{s.Name, s.Description})
	}
	return o.output.print(o.streams.Out, list, func(out io.Writer) {
		rows(out, func(w io.Writer) {
			printf(w, "SCENARIO\tWHAT HAPPENS\n")
			for _, s := range list {
				printf(w, "%s\t%s\n", s.Name, s.Description)
			}
		})
	})
}
