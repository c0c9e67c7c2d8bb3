// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// clockSkew is how far in the future a report may end.
const clockSkew = time.Second

// compareReports is an order in which no two reports that differ are equal, so that sums come out the same to the last bit.
func compareReports(a, b *Report) int {
	if a.Endpoint != b.Endpoint {
		return strings.Compare(a.Endpoint, b.Endpoint)
	}
	if d := a.End.Compare(b.End); d != 0 {
		return d
	}
	return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.InFlight, b.InFlight),
		cmp.Compare(a.Custom, b.Custom), cmp.Compare(a.Requests, b.Requests), cmp.Compare(a.Errors, b.Errors))
}

// usableReports returns pointers to the reports that can still be used, sorted. Those of a caller who keeps many old ones are left
// out first, because sorting is what takes the time.
func (u *update) usableReports(list []Report) []*Report {
	usable := make([]*Report, 0, len(list))
	inOrder := true
	for i := range list {
		r := &list[i]
		if r.End.After(u.latest) || !r.End.After(u.oldest) {
			continue
		}
		inOrder = inOrder && (len(usable) == 0 || compareReports(usable[len(usable)-1], r) <= 0)
		usable = append(usable, r)
	}
	if !inOrder {
		slices.SortFunc(usable, compareReports)
	}
	return usable
}

// gathering adds up the usable reports of an endpoint.
type gathering struct {
	cpu, inFlight, custom meanOf
	requests, errors      float64
	start, end            time.Time
	reports               int
}

// collect gives every endpoint with new usable reports their sample, and marks it in fresh.
func (u *update) collect(reports []Report) {
	list := u.usableReports(reports)
	j := 0
	for i := range u.list {
		e := &u.list[i]
		for j < len(list) && list[j].Endpoint != e.ID && list[j].Endpoint < e.ID {
			j++
		}
		var g gathering
		for ; j < len(list) && list[j].Endpoint == e.ID; j++ {
			// Of reports that end at the same time one is a replay.
			if r := list[j]; r.End.After(e.Seen) && !(g.reports > 0 && r.End.Equal(g.end)) {
				g.add(r)
			}
		}
		if g.reports == 0 || !e.Ready {
			continue
		}
		e.Last, e.Seen = g.sample(), g.end
		e.Last.Published = u.told.mean(i, g.start, g.end)
		u.points[i].fresh = true
	}
}

func (g *gathering) add(r *Report) {
	g.cpu.add(r.CPU)
	g.inFlight.add(r.InFlight)
	g.custom.add(r.Custom)
	if usable(r.Requests) {
		g.requests += min(r.Requests, largest)
		if usable(r.Errors) {
			g.errors += min(r.Errors, r.Requests, largest)
		}
	}
	if g.reports == 0 || r.Start.Before(g.start) {
		g.start = r.Start
	}
	g.end = r.End // They are sorted by it.
	g.reports++
}

// fewRequests is added to the requests when the part of failed ones is taken, so that one failure of one request is not all.
const fewRequests = 4

func (g *gathering) sample() Sample {
	return Sample{
		End: g.end, CPU: g.cpu.value(), InFlight: g.inFlight.value(), Custom: g.custom.value(),
		Requests: g.requests, Failed: g.errors / (g.requests + fewRequests),
	}
}

// largest bounds figures of reports, so that sums of them stay finite. What a liar can do is bounded elsewhere.
const largest = 1e12

func usable(x float64) bool { return x >= 0 && !math.IsInf(x, 1) } // NaN is not.

// meanOf is a mean of the figures that are usable.
type meanOf struct {
	sum float64
	n   int
}

func (m *meanOf) add(x float64) {
	if usable(x) {
		m.sum += min(x, largest)
		m.n++
	}
}

func (m *meanOf) value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum / float64(m.n)
}
