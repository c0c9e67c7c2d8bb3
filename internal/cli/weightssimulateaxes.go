// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ringwright/ringwright/internal/balance/sim"
)

// timePlot returns an empty plot over the time of a run.
func timePlot(r *sim.Run, labels bool) *plot.Plot {
	p := plot.New()
	p.X.Min, p.X.Max = 0, r.Scenario.Duration.Minutes()
	p.X.Tick.Marker = roundTicks{" min", 11, !labels}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Padding, axis.Tick.Label.Font = 0, sans(11)
	}
	if !labels {
		p.X.Tick.Label.Font = sans(1)
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = chartGrid, chartGrid
	grid.Vertical.Width, grid.Horizontal.Width = vg.Points(1), vg.Points(1)
	p.Add(grid)
	return p
}

// roundTicks are ticks at round numbers, at most most of them, with a unit behind the number.
type roundTicks struct {
	unit string
	most float64
	// blank leaves the labels out, for a plot that has another below it.
	blank bool
}

func (t roundTicks) Ticks(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/t.most)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= t.most {
			step *= factor
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(low / step); i*step <= high+step/1e6; i++ {
		label := strconv.FormatFloat(round(i*step, 6), 'f', -1, 64) + t.unit
		if t.blank {
			label = " " // A grid has lines at ticks with a label only.
		}
		ticks = append(ticks, plot.Tick{Value: i * step, Label: label})
	}
	return ticks
}

// eventNames are what events are called in a chart.
var eventNames = map[sim.Kind]string{
	sim.Freeze: "reports freeze", sim.Mute: "reports stop", sim.StallIO: "the disk stalls", sim.BlackHole: "the server fails", sim.Restart: "restart",
	sim.RestartEmpty: "restart, nothing stored", sim.Replace: "the update begins", sim.LieZero: "the lie begins", sim.LieHuge: "the lie begins",
	sim.LieNaN: "the lie begins", sim.LieLow: "the lie begins",
}

// addEvents marks when something happens; of events that follow each other the first has a name.
func addEvents(p *plot.Plot, r *sim.Run, names bool) error {
	for i, e := range r.Scenario.Events {
		x := e.At.Minutes()
		if x >= p.X.Max {
			continue
		}
		style := draw.LineStyle{Color: chartGrey, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}
		if i > 0 {
			style.Color = color.RGBA{0xcc, 0xcc, 0xcc, 0xff}
		}
		p.Add(&verticalLine{x: x, style: style})
		if !names || i > 0 {
			continue
		}
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: x, Y: 0}}, Labels: []string{eventNames[e.Kind]}})
		if err != nil {
			return err
		}
		label.Offset = vg.Point{X: 2 * vg.Millimeter, Y: 2 * vg.Millimeter}
		label.TextStyle[0].Font, label.TextStyle[0].Color = sans(11), chartGrey
		p.Add(label)
	}
	return nil
}

// verticalLine goes from the bottom to the top of a plot.
type verticalLine struct {
	x     float64
	style draw.LineStyle
}

func (l *verticalLine) Plot(c draw.Canvas, p *plot.Plot) {
	toX, _ := p.Transforms(&c)
	x := toX(l.x)
	c.StrokeLine2(l.style, x, c.Min.Y, x, c.Max.Y)
}
