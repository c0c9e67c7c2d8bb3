// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/internal/balance"
	"github.com/ringwright/ringwright/internal/balance/sim"
)

const weightsSimulateLong = `Simulate the controller of load-aware weights: servers behind clients that pick by
weight, reports that are late, lost or wrong, and servers that fail. --list prints the
scenarios. The flags change one of them.

The table shows over time how much busier the busiest server and the 95th percentile
are than the average, of the load that servers really have; a controller sees less. The
same scenario, flags and seed print the same.`

const weightsSimulateExample = `  # What can be simulated?
  kubectl hashring weights simulate --list

  # Servers of three speeds, from equal weights on, with a chart
  kubectl hashring weights simulate --chart weights.png

  # What if the reports are a minute old, and a fifth of them is lost?
  kubectl hashring weights simulate --report-delay 60s --loss 20% --duration 20m

  # What does the literal PID make of a low load?
  kubectl hashring weights simulate --scenario low-load --profile Custom`

type weightsSimulateOptions struct {
	streams     genericiooptions.IOStreams
	list        bool
	scenario    string
	profile     string
	metric      string
	seed        uint64
	duration    time.Duration
	endpoints   int
	reportDelay time.Duration
	loss        string
	chart       string
	output      *formatFlag
}

func newWeightsSimulateCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &weightsSimulateOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "simulate [--scenario NAME]",
		Short:   "Simulate load-aware weights, and everything that can go wrong with them",
		Long:    weightsSimulateLong,
		Example: weightsSimulateExample,
		Args:    noArguments,
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.list, "list", false, "print the scenarios")
	flags.StringVar(&o.scenario, "scenario", sim.Scenarios()[0].Name, "what to simulate, see --list")
	flags.StringVar(&o.profile, "profile", "", "the controller's profile: "+strings.Join(balance.ProfileNames(), ", ")+"; that of the scenario if not given")
	flags.StringVar(&o.metric, "metric", "", "what is made even: CPU, InFlight, Max or Custom, which is the CPU here; that of the scenario if not given")
	flags.Uint64Var(&o.seed, "seed", 1, "another number is another run of chance")
	flags.DurationVar(&o.duration, "duration", 0, fmt.Sprintf("how long, %v to %v; that of the scenario if not given", sim.MinDuration, sim.MaxDuration))
	flags.IntVar(&o.endpoints, "endpoints", 0, fmt.Sprintf("how many servers, %d to %d; those of the scenario if not given", sim.MinEndpoints, sim.MaxEndpoints))
	flags.DurationVar(&o.reportDelay, "report-delay", 0, fmt.Sprintf("how late reports are, 0s to %v; that of the scenario if not given", sim.MaxReportDelay))
	flags.StringVar(&o.loss, "loss", "", "which part of the reports is lost, 0% to 99%; that of the scenario if not given")
	flags.StringVar(&o.chart, "chart", "", "draw a chart into this file, whose name ends in .png or .svg")
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	_ = cmd.RegisterFlagCompletionFunc("scenario", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, s := range sim.Scenarios() {
			names = append(names, s.Name+"\t"+s.Description)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}) // The error would be that the flag does not exist.
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.list {
			return o.printScenarios()
		}
		s, err := o.chosen(cmd)
		if err != nil {
			return usagef(cmd, "%v", err)
		}
		return o.run(s)
	}
	return cmd
}

// chosen returns the scenario with what the flags change.
func (o *weightsSimulateOptions) chosen(cmd *cobra.Command) (sim.Scenario, error) {
	s, found := sim.Find(o.scenario)
	if !found {
		return s, fmt.Errorf("--scenario is %q, there is no such scenario: --list prints them", o.scenario)
	}
	if o.profile != "" {
		config, found := balance.Profile(o.profile)
		if !found {
			return s, fmt.Errorf("--profile is %q, it must be one of %s", o.profile, strings.Join(balance.ProfileNames(), ", "))
		}
		config.Metric = s.Config.Metric
		s.Config = config
	}
	if o.metric != "" {
		s.Config.Metric = balance.Metric(o.metric)
	}
	flags := cmd.Flags()
	if flags.Changed("duration") {
		s.Duration = o.duration
	}
	if flags.Changed("endpoints") {
		s.Endpoints = o.endpoints
	}
	if flags.Changed("report-delay") {
		s.ReportDelay = o.reportDelay
	}
	if o.loss != "" {
		part, err := parseLoss(o.loss)
		if err != nil {
			return s, err
		}
		s.Loss = part
	}
	if extension := filepath.Ext(o.chart); o.chart != "" && extension != ".png" && extension != ".svg" {
		return s, fmt.Errorf("--chart is %q, its name must end in .png or .svg", o.chart)
	}
	return s, s.Validate()
}

func parseLoss(text string) (float64, error) {
	number, found := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if inRange := x >= 0 && x <= 100*sim.MaxLoss; err != nil || !found || !inRange {
		return 0, fmt.Errorf("--loss is %q, it must be 0%% to %v%%", text, 100*sim.MaxLoss)
	}
	return x / 100, nil
}

func (o *weightsSimulateOptions) run(s sim.Scenario) error {
	r, err := sim.Simulate(s, o.seed)
	if err != nil {
		return err
	}
	report := newSimulationReport(r)
	if o.chart != "" {
		var picture bytes.Buffer
		if err := drawSimulation(&picture, format(strings.TrimPrefix(filepath.Ext(o.chart), ".")), r); err != nil {
			return fmt.Errorf("--chart: %w", err)
		}
		if err := os.WriteFile(o.chart, picture.Bytes(), 0o644); err != nil {
			return fmt.Errorf("--chart: %w", err)
		}
	}
	return o.output.print(o.streams.Out, report, report.print)
}
