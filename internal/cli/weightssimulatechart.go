// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"fmt"
	"image/color"
	"io"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ringwright/ringwright/internal/balance/sim"
)

const (
	// weightsPart is the part of the height that the weights have, below the utilisation.
	weightsPart      = 0.3
	simulationLegend = 1.1 * vg.Centimeter
	simulationTitle  = 1.6 * vg.Centimeter
)

// chartSky is for the lowest line, lighter than that of the average.
var chartSky = color.RGBA{0x56, 0xb4, 0xe9, 0xff}

// drawSimulation writes a chart of a run: above how busy servers are, whose lines draw together where the controller works, and
// below the weights that do it. The same run gives the same bytes.
func drawSimulation(out io.Writer, f format, r *sim.Run) error {
	if f == formatSVG {
		canvas := vgsvg.NewWith(vgsvg.UseWH(chartWidth, chartHeight), vgsvg.EmbedFonts(true))
		if err := drawSimulationOn(draw.New(canvas), r); err != nil {
			return err
		}
		buffered := bufio.NewWriter(out)
		if _, err := canvas.WriteTo(buffered); err != nil {
			return err
		}
		return buffered.Flush()
	}
	canvas := vgimg.NewWith(vgimg.UseWH(chartWidth, chartHeight), vgimg.UseDPI(chartDPI))
	if err := drawSimulationOn(draw.New(canvas), r); err != nil {
		return err
	}
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(out)
	return err
}

func drawSimulationOn(canvas draw.Canvas, r *sim.Run) error {
	busy, err := busyPlot(r)
	if err != nil {
		return err
	}
	weights, err := weightsPlot(r)
	if err != nil {
		return err
	}
	inner := draw.Crop(canvas, chartMargin, -2*chartMargin, chartMargin, -chartMargin)
	height := inner.Max.Y - inner.Min.Y - simulationTitle - simulationLegend
	lower := draw.Crop(inner, axisTitle, 0, 0, -simulationTitle-simulationLegend-(1-weightsPart)*height)
	upper := draw.Crop(inner, axisTitle, 0, weightsPart*height+2*vg.Millimeter, -simulationTitle-simulationLegend)
	// The labels of the axes differ in width: the plots are moved so that a time is at the same place in both.
	shift := busy.DataCanvas(upper).Min.X - weights.DataCanvas(lower).Min.X
	upper.Min.X += max(-shift, 0)
	lower.Min.X += max(shift, 0)
	upper.Max.X -= max(busy.DataCanvas(upper).Max.X-weights.DataCanvas(lower).Max.X, 0)
	busy.Draw(upper)
	weights.Draw(lower)
	nameSimulation(inner, r, busy, weights, upper, lower)
	return nil
}

// nameSimulation writes the title, the names of the axes and those of the lines.
func nameSimulation(inner draw.Canvas, r *sim.Run, busy, weights *plot.Plot, upper, lower draw.Canvas) {
	style := text.Style{Font: sans(15), Color: chartBlack, XAlign: draw.XLeft, YAlign: draw.YTop, Handler: busy.TextHandler}
	at := vg.Point{X: busy.DataCanvas(upper).Min.X, Y: inner.Max.Y}
	inner.FillText(style, at, r.Scenario.Name+": "+r.Scenario.Description)
	style.Font, style.Color = sans(11), chartGrey
	at.Y -= 7 * vg.Millimeter
	last := r.Frames[len(r.Frames)-1]
	inner.FillText(style, at, fmt.Sprintf("%s, %s, by %s; max/avg from %.2f to %.3f; %s of %s requests failed", plural(r.Scenario.Endpoints, "server", "servers"),
		durationText(r.Scenario.Duration), r.Scenario.Config.Metric, r.Frames[0].MaxOverAverage, r.Window(last.At, time.Minute).MaxOverAverage, groupDigits(r.Failed), groupDigits(r.Requests)))
	at.Y = inner.Max.Y - simulationTitle - 2*vg.Millimeter
	style.Color, style.YAlign = chartBlack, draw.YCenter
	for _, line := range simulationLines {
		inner.StrokeLine2(draw.LineStyle{Color: line.color, Width: line.width}, at.X, at.Y, at.X+9*vg.Millimeter, at.Y)
		inner.FillText(style, vg.Point{X: at.X + 11*vg.Millimeter, Y: at.Y}, line.name)
		at.X += 48 * vg.Millimeter
	}
	style.Font, style.Rotation, style.XAlign = sans(12), math.Pi/2, draw.XCenter
	for _, p := range []struct {
		plot *plot.Plot
		area draw.Canvas
		name string
	}{{busy, upper, "utilisation"}, {weights, lower, "weights"}} {
		data := p.plot.DataCanvas(p.area)
		inner.FillText(style, vg.Point{X: inner.Min.X + axisTitle/2, Y: (data.Min.Y + data.Max.Y) / 2}, p.name)
	}
}

// simulationLines are the lines of the upper plot, those that matter most last, so that they are on top.
var simulationLines = []struct {
	name  string
	color color.Color
	width vg.Length
	of    func(sim.Frame) float64
}{
	{"busiest server", chartOrange, vg.Points(2), func(f sim.Frame) float64 { return f.MaxOverAverage * f.Average }},
	{"95th percentile", color.RGBA{0xe6, 0x9f, 0x00, 0xff}, vg.Points(1.5), func(f sim.Frame) float64 { return f.P95OverAverage * f.Average }},
	{"5th percentile", chartSky, vg.Points(1.5), func(f sim.Frame) float64 { return f.P5OverAverage * f.Average }},
	{"average", chartBlack, vg.Points(2), func(f sim.Frame) float64 { return f.Average }},
}

func busyPlot(r *sim.Run) (*plot.Plot, error) {
	p := timePlot(r, false)
	highest := 0.0
	p.Y.Min, p.Y.Max = 0, 1
	if err := addEvents(p, r, true); err != nil {
		return nil, err
	}
	for _, line := range simulationLines {
		var points plotter.XYs
		for _, f := range r.Frames {
			// A frame is drawn in the middle of its time.
			points = append(points, plotter.XY{X: (f.At - sim.FrameTime/2).Minutes(), Y: 100 * line.of(f)})
			highest = max(highest, points[len(points)-1].Y)
		}
		if err := addLine(p, points, line.color, line.width); err != nil {
			return nil, err
		}
	}
	p.Y.Min, p.Y.Max = 0, min(highest*1.12, 105)
	p.Y.Tick.Marker = roundTicks{"%", 6, false}
	return p, nil
}

func weightsPlot(r *sim.Run) (*plot.Plot, error) {
	p := timePlot(r, true)
	start := plotter.XY{X: 0, Y: 1} // All simulations begin with equal weights.
	low, middle, high := plotter.XYs{start}, plotter.XYs{start}, plotter.XYs{start}
	highest := 1.0
	for _, f := range r.Frames {
		x := f.At.Minutes()
		low = append(low, plotter.XY{X: x, Y: f.Weights.Min})
		middle = append(middle, plotter.XY{X: x, Y: f.Weights.Median})
		high = append(high, plotter.XY{X: x, Y: f.Weights.Max})
		highest = max(highest, f.Weights.Max)
	}
	area := append(plotter.XYs(nil), high...)
	for i := len(low) - 1; i >= 0; i-- {
		area = append(area, low[i])
	}
	band, err := plotter.NewPolygon(area)
	if err != nil {
		return nil, err
	}
	band.Color, band.Width = color.RGBA{0xe3, 0xee, 0xf6, 0xff}, 0
	p.Add(band)
	p.Y.Min, p.Y.Max = 0, highest*1.15
	if err := addEvents(p, r, false); err != nil {
		return nil, err
	}
	for _, line := range []plotter.XYs{low, middle, high} {
		if err := addLine(p, line, chartBlue, vg.Points(1.5)); err != nil {
			return nil, err
		}
	}
	p.Y.Tick.Marker = roundTicks{"", 4, false}
	p.Y.Min, p.Y.Max = 0, highest*1.15
	return p, nil
}

func addLine(p *plot.Plot, points plotter.XYs, c color.Color, width vg.Length) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, width
	p.Add(line)
	return nil
}
