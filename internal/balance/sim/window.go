// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"time"

	"github.com/ringwright/ringwright/internal/balance"
)

// Balance is how even servers were.
type Balance struct {
	Average, MaxOverAverage, P95OverAverage, P5OverAverage float64
}

// balanceOf takes a utilisation for each server, NaN for those that were not there.
func balanceOf(busy []float64) Balance {
	there := make([]float64, 0, len(busy))
	sum := 0.0
	for _, x := range busy {
		if !math.IsNaN(x) {
			there = append(there, x)
			sum += x
		}
	}
	if len(there) == 0 || sum == 0 {
		return Balance{}
	}
	slices.Sort(there)
	mean := sum / float64(len(there))
	at := func(part float64) float64 {
		return there[min(max(int(math.Ceil(part*float64(len(there))))-1, 0), len(there)-1)] / mean
	}
	return Balance{mean, at(1), at(0.95), at(0.05)}
}

func spreadOf(weights []balance.Weight) Spread {
	if len(weights) == 0 {
		return Spread{}
	}
	all := make([]float64, len(weights))
	for i, w := range weights {
		all[i] = w.Weight
	}
	slices.Sort(all)
	return Spread{all[0], all[len(all)/2], all[len(all)-1]}
}

// Window returns how even the servers were in a time of whole frames that ends at an instant. Servers that were not there all
// the time, or were replaced, do not count.
func (r *Run) Window(end, length time.Duration) Balance { return balanceOf(r.means(end, length)) }

// means returns the mean utilisation of each server in a window, NaN for those that were not there all the time.
func (r *Run) means(end, length time.Duration) []float64 {
	last := int(end / FrameTime)
	first := last - int(length/FrameTime)
	if first < 0 || last > len(r.busy) || first == last {
		return nil
	}
	mean := make([]float64, len(r.busy[last-1]))
	for i := range mean {
		for _, frame := range r.busy[first:last] {
			x := math.NaN()
			if i < len(frame) {
				x = frame[i]
			}
			mean[i] += x / float64(last-first)
		}
	}
	return mean
}

// Worst returns the largest MaxOverAverage of all windows of a length that lie within a time: one begins with every frame.
func (r *Run) Worst(from, to, length time.Duration) float64 {
	worst := 0.0
	for end := from + length; end <= to; end += FrameTime {
		worst = max(worst, r.Window(end, length).MaxOverAverage)
	}
	return worst
}

// Lost returns which part of the requests failed in the frames that lie within a time.
func (r *Run) Lost(from, to time.Duration) float64 {
	failed, all := 0.0, 0.0
	for _, f := range r.Frames {
		if f.At > from && f.At <= to {
			failed += f.Failed
			all += f.Requests
		}
	}
	return failed / max(all, 1)
}

// MostMoved returns the largest part of the traffic, or of the keys of a ring, that moved in any stretch of a length within a
// time.
func (r *Run) MostMoved(from, to, length time.Duration) float64 {
	most := 0.0
	for end := from + length; end <= to; end += FrameTime {
		moved := 0.0
		for _, f := range r.Frames[int((end-length)/FrameTime):int(end/FrameTime)] {
			moved += f.Moved
		}
		most = max(most, moved)
	}
	return most
}

// WorstAgainstIdeal returns the largest factor between a weight of the controller and the one with which all servers would be
// equally busy.
func (r *Run) WorstAgainstIdeal() float64 {
	worst := 1.0
	own, ideal := r.state.Weights(), r.world.ideals()
	for i, w := range own {
		ratio := w.Weight / ideal[i]
		worst = max(worst, ratio, 1/ratio)
	}
	return worst
}

// Row is what happened in some frames together.
type Row struct {
	Balance
	// From and To are the times between which it happened.
	From, To time.Duration
	// Requests and Failed count requests.
	Requests, Failed float64
	// Controller and Weights are those of the last frame.
	Controller Verdict
	Weights    Spread
}

// Rows returns the run in steps of whole frames; what is left at the end is a shorter one.
func (r *Run) Rows(step time.Duration) []Row {
	var rows []Row
	frames := max(int(step/FrameTime), 1)
	for first := 0; first < len(r.Frames); first += frames {
		last := min(first+frames, len(r.Frames))
		end := r.Frames[last-1]
		row := Row{From: end.At - time.Duration(last-first)*FrameTime, To: end.At, Controller: end.Controller, Weights: end.Weights}
		row.Balance = r.Window(end.At, row.To-row.From)
		for _, f := range r.Frames[first:last] {
			row.Requests += f.Requests
			row.Failed += f.Failed
		}
		rows = append(rows, row)
	}
	return rows
}
