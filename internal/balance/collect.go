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

// sortedReports returns the reports that can still be used, sorted. Those of a caller who keeps many old ones are left out first,
// because sorting is what takes the time.
func (u *update) sortedReports(list []Report) []Report {
	order := make([]*Report, 0, len(list)) // Which are moved faster than reports.
	for i := range list {
		if end := InstantOf(list[i].End); end > u.oldest && end <= u.latest {
			order = append(order, &list[i])
		}
	}
	slices.SortFunc(order, compareReports)
	sorted := make([]Report, len(order))
	for i, r := range order {
		sorted[i] = *r
	}
	return sorted
}

// gathering adds up the usable reports of an endpoint.
type gathering struct {
	cpu, inFlight, custom meanOf
	requests, errors      float64
	start, end            Instant
	reports               int
}

// collect gives every endpoint with new usable reports their sample, and marks it as fresh.
func (u *update) collect(reports []Report) {
	if !u.collectSorted(reports) {
		u.collectSorted(u.sortedReports(reports))
	}
	for i := range u.list {
		if u.points[i].fresh {
			u.list[i].Seen = u.list[i].Last.End // Not before it is known that they are sorted: another look needs the old one.
		}
	}
}

// collectSorted does so if the reports are sorted, and says whether they are. Reports of the same endpoints as last time need not be
// compared with each other: their IDs are usually the same strings, at which nobody has to look.
func (u *update) collectSorted(reports []Report) bool {
	j, n := 0, len(reports)
	for i := range u.list {
		e, p := &u.list[i], &u.points[i]
		p.fresh = false
		for ; j < n && !sameString(reports[j].Endpoint, e.ID) && reports[j].Endpoint < e.ID; j++ {
			if j > 0 && reports[j].Endpoint < reports[j-1].Endpoint {
				return false
			}
		}
		g := gathering{end: e.Seen}
		for first := j; j < n && (sameString(reports[j].Endpoint, e.ID) || reports[j].Endpoint == e.ID); j++ {
			if j > first && compareReports(&reports[j-1], &reports[j]) > 0 {
				return false
			}
			u.gather(&g, &reports[j])
			if j+1 < n && i+1 < len(u.list) && sameString(reports[j+1].Endpoint, u.list[i+1].ID) {
				j++
				break
			}
		}
		if g.reports == 0 || !e.Ready {
			continue
		}
		e.Last, p.fresh = g.sample(), true
		e.Last.Published = float32(u.told.mean(i, g.start, g.end))
	}
	for ; j < n; j++ {
		if j > 0 && reports[j].Endpoint < reports[j-1].Endpoint {
			return false
		}
	}
	return true
}

// gather adds a report that ends later than those before. Of reports that end at the same time one is a replay.
func (u *update) gather(g *gathering, r *Report) {
	if end := InstantOf(r.End); end > g.end && end <= u.latest && end > u.oldest {
		g.add(r, InstantOf(r.Start), end)
	}
}

func (g *gathering) add(r *Report, start, end Instant) {
	g.cpu.add(r.CPU)
	g.inFlight.add(r.InFlight)
	g.custom.add(r.Custom)
	if usable(r.Requests) {
		g.requests += min(r.Requests, largest)
		if usable(r.Errors) {
			g.errors += min(r.Errors, r.Requests, largest)
		}
	}
	if g.reports == 0 || start < g.start {
		g.start = start
	}
	g.end = end
	g.reports++
}

// fewRequests is added to the requests when the part of failed ones is taken, so that one failure of one request is not all.
const fewRequests = 4

func (g *gathering) sample() Sample {
	return Sample{
		End: g.end, CPU: float32(g.cpu.value()), InFlight: float32(g.inFlight.value()), Custom: float32(g.custom.value()),
		Requests: float32(g.requests), Failed: float32(g.errors / (g.requests + fewRequests)),
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
