// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// print writes the plan for people: the sentence that says what it comes to, then before and after, then who is concerned. Of the
// backends there are as many as said, 0 is all.
func (r *PlanReport) print(out io.Writer, verdict string, pairs, backends int) {
	printf(out, "HashRing %s, compared with %s\n", r.Ring, r.From)
	printf(out, "%s\n\n", verdict)
	rows(out, r.ringTable)
	if len(r.Pairs) > 0 {
		printf(out, "\n")
		rows(out, r.pairTable)
	}
	if left := r.PairCount - len(r.Pairs); left > 0 && pairs > 0 {
		printf(out, "%s not shown: --pairs %d shows all\n", plural(left, "smaller move is", "smaller moves are"), r.PairCount)
	}
	if len(r.Views) > 0 {
		printf(out, "\n")
		rows(out, r.viewTable)
	}
	if len(r.Backends) > 0 {
		printf(out, "\n")
		r.printBackends(out, backends)
	}
	if len(r.Addresses) > 0 {
		printf(out, "\n")
		rows(out, r.addressTable)
	}
	if len(r.Notes) > 0 {
		printf(out, "\n")
	}
	for _, note := range r.Notes {
		printf(out, "note: %s\n", note)
	}
	if len(r.After.Snapshot.Warnings) > 0 {
		printf(out, "\n")
		printWarnings(out, r.After.Snapshot.Warnings)
	}
}

// verdict says in a sentence what the plan comes to.
func (r *PlanReport) verdict() string {
	where := ""
	if len(r.Features) > 0 {
		where = " of the view " + strings.Join(r.Features, ",")
	}
	switch r.Outcome {
	case PlanFirst:
		return "It is the first ring: every key gets an owner."
	case PlanMoves:
		text := fmt.Sprintf("%s of the key space%s moves.", moved(r.Moved, r.MovedPositions), where)
		if r.MovedPositions == 0 {
			text = "Nothing moves in the ring of all backends."
		}
		if len(r.Views) > 0 {
			text += " For readers that ask for features it differs: see the views."
		}
		return text
	case PlanBytesOnly:
		return fmt.Sprintf("Nothing moves: every key%s keeps its owner. The snapshot is another: its bytes change.", where)
	case PlanAddressesOnly:
		return "Nothing moves: the snapshot is the same. Only addresses change: see below."
	default:
		return "Nothing moves, and nothing would be published: snapshot and addresses are the same."
	}
}

// moved prints a share so that what is not nothing does not look like it.
func moved(part float64, positions uint64) string {
	const digits = 3
	if positions > 0 && round(part*100, digits) == 0 {
		return "<0.001%"
	}
	return percent(part, digits)
}

// ringTable shows the rings side by side.
func (r *PlanReport) ringTable(w io.Writer) {
	printf(w, "\tBEFORE\tAFTER\n")
	row := func(name string, cell func(p *PlannedRing) string) {
		before := ""
		if r.Before != nil {
			before = cell(r.Before)
		}
		if after := cell(&r.After); before != "" || after != "" {
			printf(w, "%s\t%s\t%s\n", name, dash(before), dash(after))
		}
	}
	row("digest", func(p *PlannedRing) string { return shortDigest(p.Snapshot.Digest) })
	row("encoding", func(p *PlannedRing) string { return p.Snapshot.Encoding })
	row("algorithm", func(p *PlannedRing) string {
		return fmt.Sprintf("%s, %d points", p.Snapshot.Algorithm.Version, p.Snapshot.Algorithm.PointsPerWeight)
	})
	row("backends", func(p *PlannedRing) string { return countText(p.Snapshot.Backends) })
	row("features", func(p *PlannedRing) string { return strings.Join(p.Snapshot.Features, ",") })
	row("points", func(p *PlannedRing) string { return strconv.Itoa(p.Snapshot.Points) })
	row("bytes", (*PlannedRing).bytesText)
	balance := func(p *PlannedRing) BalanceReport {
		if p.View != nil {
			return p.View.Balance
		}
		return p.Snapshot.Balance
	}
	row("max/avg", func(p *PlannedRing) string { return fmt.Sprintf("%.3f", balance(p).MaxOverAverage) })
	row("min/avg", func(p *PlannedRing) string { return fmt.Sprintf("%.3f", balance(p).MinOverAverage) })
	row("CV", func(p *PlannedRing) string { return percent(balance(p).CoefficientOfVariation, 2) })
	row("worst view", func(p *PlannedRing) string {
		if p.WorstView == nil {
			return ""
		}
		return fmt.Sprintf("%s, max/avg %.3f", viewName(p.WorstView.Features), p.WorstView.MaxOverAverage)
	})
}

// bytesText says how many bytes there are, and what part of the ConfigMaps they take.
func (p *PlannedRing) bytesText() string {
	switch {
	case p.Chunks > 1:
		return fmt.Sprintf("%d, %s of %d chunks, %d in use", p.Snapshot.Bytes, percent(p.PartOfChunks, 1), p.Chunks, p.ChunksInUse)
	case p.ChunksInUse > 1:
		return fmt.Sprintf("%d, in %d chunks", p.Snapshot.Bytes, p.ChunksInUse)
	default:
		return fmt.Sprintf("%d, %s of a ConfigMap", p.Snapshot.Bytes, percent(p.PartOfConfigMap, 1))
	}
}

// shortDigest keeps as much of a digest as tells two apart.
func shortDigest(digest string) string {
	const kept = len("sha256:") + 12
	return digest[:min(len(digest), kept)]
}

func countText(c BackendCounts) string {
	if c.Drained == 0 {
		return strconv.Itoa(c.Total)
	}
	return fmt.Sprintf("%d, %d drained", c.Total, c.Drained)
}

func viewName(features []string) string {
	if len(features) == 0 {
		return "all backends"
	}
	return strings.Join(features, ",")
}

// printBackends lists the backends that gain and lose the most, at most count, in the order of the report.
func (r *PlanReport) printBackends(out io.Writer, count int) {
	shown := r.Backends
	if count > 0 && len(shown) > count {
		largest := slices.Clone(shown)
		slices.SortStableFunc(largest, func(a, b BackendChange) int { return cmp.Compare(b.Gained+b.Lost, a.Gained+a.Lost) })
		kept := map[string]bool{}
		for _, b := range largest[:count] {
			kept[b.ID] = true
		}
		shown = slices.DeleteFunc(slices.Clone(shown), func(b BackendChange) bool { return !kept[b.ID] })
	}
	rows(out, func(w io.Writer) {
		printf(w, "BACKEND\tWEIGHT\tSHARE\tGAINED\tLOST\n")
		for _, b := range shown {
			printf(w, "%s\t%s\t%s to %s\t%s\t%s\n", b.ID, b.weightText(), percent(b.ShareBefore, 3), percent(b.ShareAfter, 3),
				part(b.Gained), part(b.Lost))
		}
	})
	if left := len(r.Backends) - len(shown); left > 0 {
		printf(out, "%s not shown: --backends 0 shows all\n",
			plural(left, "backend that gains and loses less is", "backends that gain and lose less are"))
	}
}

func (b BackendChange) weightText() string {
	switch {
	case b.WeightBefore == nil:
		return fmt.Sprintf("%d, new", *b.WeightAfter)
	case b.WeightAfter == nil:
		return fmt.Sprintf("%d, gone", *b.WeightBefore)
	case *b.WeightBefore != *b.WeightAfter:
		return fmt.Sprintf("%d to %d", *b.WeightBefore, *b.WeightAfter)
	default:
		return strconv.FormatUint(uint64(*b.WeightAfter), 10)
	}
}

// part prints a share, and nothing as a dash.
func part(x float64) string {
	if x == 0 {
		return "-"
	}
	return moved(x, 1)
}

func (r *PlanReport) pairTable(w io.Writer) {
	printf(w, "FROM\tTO\tMOVED\n")
	for _, p := range r.Pairs {
		printf(w, "%s\t%s\t%s\n", dash(p.From), dash(p.To), part(p.Moved))
	}
}

func (r *PlanReport) viewTable(w io.Writer) {
	printf(w, "VIEW\tMOVED\n")
	for _, v := range r.Views {
		printf(w, "%s\t%s\n", viewName(v.Features), moved(v.Moved, v.MovedPositions))
	}
}

func (r *PlanReport) addressTable(w io.Writer) {
	printf(w, "BACKEND\tADDRESS\n")
	for _, a := range r.Addresses {
		printf(w, "%s\t%s to %s\n", a.ID, a.Before, a.After)
	}
}
