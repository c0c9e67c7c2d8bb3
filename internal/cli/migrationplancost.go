// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

// addCost says what a step moves and how many requests that sends to the origins: of the requests of each datacenter that is not
// excluded, the added share, times the movement, times the hit ratio.
func (p *planner) addCost(step *MigrationPlanStep) {
	if p.movement < 0 {
		return
	}
	moved := float64(step.AddedBasisPoints) / routing.MaxBasisPoints * p.movement
	step.Moves = percent(moved, 2)
	if !p.load.given {
		return
	}
	extra := 0.0
	for _, name := range step.Datacenters {
		if !slices.Contains(p.Spec.Limits.ExcludedDatacenters, name) {
			extra += p.rateOf(name) * moved * p.load.hitRatio
		}
	}
	extra = round(extra, 1)
	step.ExtraOriginRate = &extra
}

func (p *planner) rateOf(datacenter string) float64 {
	if rate, own := p.load.rates[datacenter]; own {
		return rate
	}
	return p.load.rate
}

// noteRates says what of --rate is about no step.
func (p *planner) noteRates() {
	for _, name := range slices.Sorted(maps.Keys(p.load.rates)) {
		taken := slices.ContainsFunc(p.report.Steps, func(s MigrationPlanStep) bool { return slices.Contains(s.Datacenters, name) })
		if !taken {
			p.note("--rate names %s, which no stage takes", name)
		}
	}
	if p.movement < 0 {
		p.note("without a candidate nothing can be said about requests to the origins")
	}
}

// addDatacenters compares the plan with who has consumers.
func (p *planner) addDatacenters() {
	if len(p.consumers) == 0 {
		return
	}
	remainder := slices.ContainsFunc(p.stages(), func(s v1alpha1.MigrationStage) bool { return s.Datacenters.Remainder })
	for _, name := range slices.Sorted(maps.Keys(p.consumers)) {
		if name != "" && p.consumers[name] > 0 && !remainder && !p.named(name) {
			p.report.Untaken = append(p.report.Untaken, name)
		}
	}
	for _, stage := range p.stages() {
		for _, name := range stage.Datacenters.Names {
			if p.consumers[name] == 0 {
				p.report.NoConsumers = append(p.report.NoConsumers, name)
			}
		}
	}
	slices.Sort(p.report.NoConsumers)
	if n := p.consumers[""]; n > 0 {
		p.note("%s told no datacenter: no stage takes them, and the old ring is not retired while they are there", plural(n, "consumer was", "consumers were"))
	}
	for _, name := range p.Spec.Limits.ExcludedDatacenters {
		if p.consumers[name] > 0 {
			p.note("%s is excluded and has consumers: the old ring is not retired while that is so", name)
		}
	}
	if p.maximum < routing.MaxBasisPoints {
		p.note("limits.maxTraffic is %s: the old ring is not retired while that is so", p.Spec.Limits.MaxTraffic)
	}
}

func (r *MigrationPlanReport) print(out io.Writer) {
	printf(out, "%s %s: %s and a retirement\n\n", migrationKind, r.Migration, plural(len(r.Steps), "step", "steps"))
	if len(r.Rings) > 0 {
		r.printRings(out)
	}
	var table strings.Builder
	rows(&table, func(w io.Writer) {
		r.printTitles(w)
		stage := ""
		for _, step := range r.Steps {
			r.printStep(w, step, step.Stage == stage)
			stage = step.Stage
		}
		r.printStep(w, r.Retirement, false)
	})
	for line := range strings.Lines(table.String()) {
		printf(out, "%s\n", strings.TrimRight(line, " \n"))
	}
	printf(out, "\n")
	if r.Origins != nil {
		printf(out, "EXTRA ORIGIN is requests per second right after the step: rate x added share x movement x hit ratio (%s).\n"+
			"It decays as the caches warm up.\n", percent(r.Origins.HitRatio, 1))
	}
	if len(r.Untaken) > 0 {
		printf(out, "warning: no stage takes %s, which %s consumers: the old ring is not retired while that is so\n",
			clip(r.Untaken, maxStageNames), has(len(r.Untaken)))
	}
	if len(r.NoConsumers) > 0 {
		printf(out, "warning: a stage names %s, which %s no consumers: it would wait for them as unreachable\n",
			clip(r.NoConsumers, maxStageNames), has(len(r.NoConsumers)))
	}
	for _, note := range r.Notes {
		printf(out, "note: %s\n", note)
	}
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func (r *MigrationPlanReport) printRings(out io.Writer) {
	rows(out, func(w io.Writer) {
		printf(w, "RING\tCANDIDATE\tMOVEMENT\tSTABLE\tCANDIDATE\n")
		for _, ring := range r.Rings {
			printf(w, "%s\t%s\t%s\t%d bytes\t%d bytes\n", ring.Name, dash(shortDigest(ring.Candidate)), dash(ring.Movement), ring.StableBytes, ring.CandidateBytes)
		}
	})
	printf(out, "Each reader maps %d bytes of snapshots before, %d bytes with both rings, %d bytes after.\n\n", r.Memory.Before, r.Memory.During, r.Memory.After)
}

func (r *MigrationPlanReport) printTitles(w io.Writer) {
	origin := ""
	if r.Origins != nil {
		origin = "EXTRA ORIGIN\t"
	}
	printf(w, "STAGE\tSTEP\tTRAFFIC\tMOVES\t%sSOAK\tEARLIEST\tGATES\tAPPROVAL\tDATACENTERS\n", origin)
}

// printStep prints a step. Again says that the one before is of the same stage, which is named once.
func (r *MigrationPlanReport) printStep(w io.Writer, step MigrationPlanStep, again bool) {
	stage, number, datacenters := step.Stage, fmt.Sprint(step.Step), clip(step.Datacenters, maxStageNames)
	switch {
	case again:
		stage, datacenters = "", ""
	case step.Stage == "":
		stage, number = "retirement", "-"
	case step.Remainder:
		datacenters = strings.TrimSpace("all others: " + dash(datacenters))
	}
	cells := []string{stage, number, dash(step.Traffic), dash(step.Moves)}
	if r.Origins != nil {
		extra := "-"
		if step.ExtraOriginRate != nil {
			extra = fmt.Sprintf("%.1f/s", *step.ExtraOriginRate)
		}
		cells = append(cells, extra)
	}
	earliest, approval := step.Earliest, "-"
	if step.State == stepDone {
		earliest = stepDone
	}
	if step.State == stepCurrent {
		earliest += ", current"
	}
	if step.Approval {
		approval = "after soak"
	}
	cells = append(cells, step.Soak, earliest, dash(strings.Join(step.Gates, ",")), approval, datacenters)
	printf(w, "%s\n", strings.Join(cells, "\t"))
}
