// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

// maxDatacenterRows is how many datacenters have a line of their own before those that are alike share one.
const maxDatacenterRows = 12

// printDatacenters says what share is published where, and who has it.
func (t migrationTree) printDatacenters(out io.Writer) {
	list := t.Status.Datacenters
	if len(list) == 0 {
		return
	}
	printf(out, "\n%s\n", t.strong("datacenters"))
	rows(out, func(w io.Writer) {
		if t.all || len(list) <= maxDatacenterRows {
			for _, d := range list {
				printf(w, "  %s\t%s\t%s\n", datacenterName(d.Name), migrationapi.Percent(int(d.BasisPoints)), t.consumersText(d))
			}
			return
		}
		t.printGroups(w, list)
	})
}

// printGroups prints those that are complete in a line for each share, and the first of the others one by one.
func (t migrationTree) printGroups(w io.Writer, list []v1alpha1.MigrationDatacenter) {
	groups := map[int32]*v1alpha1.MigrationDatacenter{}
	counts := map[int32]int{}
	var shares []int32
	var others []v1alpha1.MigrationDatacenter
	for _, d := range list {
		if d.Current < d.Total {
			others = append(others, d)
			continue
		}
		if groups[d.BasisPoints] == nil {
			groups[d.BasisPoints] = &v1alpha1.MigrationDatacenter{BasisPoints: d.BasisPoints}
			shares = append(shares, d.BasisPoints)
		}
		group := groups[d.BasisPoints]
		group.Total, group.Reachable, group.Current = group.Total+d.Total, group.Reachable+d.Reachable, group.Current+d.Current
		counts[d.BasisPoints]++
	}
	slices.Sort(shares)
	for _, share := range shares {
		printf(w, "  %s\t%s\t%s\n", plural(counts[share], "datacenter", "datacenters"), migrationapi.Percent(int(share)), t.consumersText(*groups[share]))
	}
	for _, d := range others[:min(len(others), maxDatacenterRows)] {
		printf(w, "  %s\t%s\t%s\n", datacenterName(d.Name), migrationapi.Percent(int(d.BasisPoints)), t.consumersText(d))
	}
	if left := len(others) - maxDatacenterRows; left > 0 {
		printf(w, "  %s that not all consumers are current in; --all lists them\t\t\n", plural(left, "other", "others"))
	}
}

func (t migrationTree) consumersText(d v1alpha1.MigrationDatacenter) string {
	text := fmt.Sprintf("%d of %s current", d.Current, plural(int(d.Total), "consumer", "consumers"))
	if gone := d.Total - d.Reachable; gone > 0 {
		text += fmt.Sprintf(", %d unreachable", gone)
	}
	if d.Current < d.Total {
		return t.active(text)
	}
	return text
}

// printGates says what the gates said last.
func (t migrationTree) printGates(out io.Writer) {
	if len(t.Spec.Gates) == 0 {
		return
	}
	printf(out, "\n%s\n", t.strong("gates"))
	rows(out, func(w io.Writer) {
		for _, gate := range t.Spec.Gates {
			i := slices.IndexFunc(t.Status.Gates, func(s v1alpha1.GateStatus) bool { return s.Name == gate.Name })
			if i < 0 {
				printf(w, "  · %s\tnot measured yet\t\t%s\n", gate.Name, modeText(gate))
				continue
			}
			s := t.Status.Gates[i]
			printf(w, "  %s %s\t%s\t%s\t%s\n", gateMark(s.Result), gate.Name, gateResultText(s), figuresText(s), t.gateNote(gate, s))
		}
	})
}

func modeText(gate v1alpha1.MigrationGate) string {
	if gate.Mode == v1alpha1.GateObserve {
		return "only observed"
	}
	return ""
}

func gateMark(result v1alpha1.GateResult) string {
	switch result {
	case v1alpha1.GatePass:
		return "✔"
	case v1alpha1.GateFail:
		return "✘"
	case "":
		return "·"
	default:
		return "?"
	}
}

func gateResultText(s v1alpha1.GateStatus) string {
	if s.Result == "" {
		return "not measured yet"
	}
	return string(s.Result)
}

func figuresText(s v1alpha1.GateStatus) string {
	var parts []string
	for _, f := range []struct{ name, text string }{{"value", s.Value}, {"baseline", s.Baseline}, {"samples", s.Samples}} {
		if f.text != "" {
			parts = append(parts, f.name+" "+f.text)
		}
	}
	return strings.Join(parts, ", ")
}

// gateNote says how old a result is, how often it failed lately, and what it was when it is none that passes.
func (t migrationTree) gateNote(gate v1alpha1.MigrationGate, s v1alpha1.GateStatus) string {
	var parts []string
	if s.At != nil {
		parts = append(parts, age(t.now, s.At.Time)+" ago")
	}
	if n := len(s.Failures); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s", n, plural(int(max(gate.FailureThreshold, 1)), "failure", "failures")))
	}
	if mode := modeText(gate); mode != "" {
		parts = append(parts, mode)
	}
	if s.Detail != "" && s.Result != v1alpha1.GatePass {
		parts = append(parts, s.Detail)
	}
	return strings.Join(parts, ", ")
}

// printHolds says what keeps it from going forward.
func (t migrationTree) printHolds(out io.Writer) {
	holds := explainHolds(t.migrationView, t.now, t.command)
	if len(holds) == 0 {
		return
	}
	printf(out, "\n%s\n", t.strong("holds"))
	for _, h := range holds {
		printf(out, "  %s for %s", t.bad(h.Type), h.For)
		if h.Detail != "" {
			printf(out, ": %s", h.Detail)
		}
		printf(out, "\n    ended by %s\n", h.EndedBy)
		for _, command := range h.Commands {
			printf(out, "    $ %s\n", command)
		}
	}
}
