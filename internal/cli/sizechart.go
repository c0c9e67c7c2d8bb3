// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colours of Okabe and Ito, which people with any kind of colour vision tell apart.
var (
	chartBlack  = color.RGBA{0x22, 0x22, 0x22, 0xff}
	chartGrey   = color.RGBA{0x77, 0x77, 0x77, 0xff}
	chartGrid   = color.RGBA{0xe6, 0xe6, 0xe6, 0xff}
	chartBlue   = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	chartOrange = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	chartBand   = color.RGBA{0xf4, 0xf4, 0xf4, 0xff}
	chartShade  = color.RGBA{0xf2, 0xcc, 0xb0, 0xff}
)

const (
	chartWidth, chartHeight = 25 * vg.Centimeter, 15 * vg.Centimeter
	chartDPI                = 144
	chartMargin             = 0.5 * vg.Centimeter
	legendHeight            = 2.2 * vg.Centimeter
	legendIndent            = 2 * vg.Centimeter
	axisTitle               = 0.9 * vg.Centimeter
)

// draw writes a chart of the imbalance against the points, both on logarithmic axes. The same report gives the same bytes.
func (r *SizeReport) draw(out io.Writer, f format, curves []sizeCurve) error {
	switch {
	case r.Backends < 2:
		return errors.New("a ring of one backend has no imbalance to draw")
	case len(r.Rungs) < 2:
		return errors.New("a chart needs at least two numbers of points that a ring can have")
	}
	if f == formatSVG {
		canvas := vgsvg.NewWith(vgsvg.UseWH(chartWidth, chartHeight), vgsvg.EmbedFonts(true))
		if err := r.drawOn(draw.New(canvas), curves); err != nil {
			return err
		}
		buffered := bufio.NewWriter(out)
		if _, err := canvas.WriteTo(buffered); err != nil {
			return err
		}
		return buffered.Flush()
	}
	canvas := vgimg.NewWith(vgimg.UseWH(chartWidth, chartHeight), vgimg.UseDPI(chartDPI))
	if err := r.drawOn(draw.New(canvas), curves); err != nil {
		return err
	}
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(out)
	return err
}

// sizeChart is a plot with its legend, which stands below it and so covers nothing.
type sizeChart struct {
	*plot.Plot
	legends [2]plot.Legend
	report  *SizeReport
	curves  []sizeCurve
	lowest  float64
	highest float64
	// boxed says that there is the box of addSteps.
	boxed bool
}

func (r *SizeReport) drawOn(canvas draw.Canvas, curves []sizeCurve) error {
	c := &sizeChart{Plot: plot.New(), report: r, curves: curves, legends: [2]plot.Legend{plot.NewLegend(), plot.NewLegend()}}
	c.setRange()
	c.style()
	for _, add := range []func() error{c.addSteps, c.addShade, c.addPredictions, c.addMeasurements, c.addMarks} {
		if err := add(); err != nil {
			return err
		}
	}
	inner := draw.Crop(canvas, chartMargin, -2*chartMargin, chartMargin, -chartMargin)
	area := draw.Crop(inner, axisTitle, 0, legendHeight+axisTitle, 0)
	c.Draw(area)
	c.nameAxes(inner, area)
	width := inner.Max.X - inner.Min.X
	for i := range c.legends {
		part := inner
		part.Min.X += legendIndent + vg.Length(i)*width/2
		part.Max.Y = part.Min.Y + legendHeight - 3*vg.Millimeter
		c.legends[i].Draw(part)
	}
	return nil
}

// nameAxes writes what the axes show. The names that plot knows take room from the plot on the sides where they are not.
func (c *sizeChart) nameAxes(outer, area draw.Canvas) {
	style := text.Style{Font: sans(13), Color: chartBlack, XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: c.TextHandler}
	data := c.DataCanvas(area)
	below := vg.Point{X: (data.Min.X + data.Max.X) / 2, Y: area.Min.Y - axisTitle/2}
	outer.FillText(style, below, "points for "+unitText(c.report.WeightUnit)+" (logarithmic)")
	style.Rotation = math.Pi / 2
	left := vg.Point{X: area.Min.X - 0.6*axisTitle, Y: (data.Min.Y + data.Max.Y) / 2}
	outer.FillText(style, left, "busiest backend above its share (%)")
}

// setRange finds what the axis of the imbalance has to show: a third more than all values on both sides.
func (c *sizeChart) setRange() {
	c.lowest, c.highest = math.Inf(1), 0
	see := func(x float64) {
		if x > 0 {
			c.lowest, c.highest = min(c.lowest, x), max(c.highest, x)
		}
	}
	for _, p := range c.curves {
		see(p.random)
		see(p.plain)
		see(p.trimmed)
	}
	for _, rung := range c.report.Rungs {
		for _, s := range []SizedRing{rung.Plain, rung.Trimmed} {
			if s.MaxOverAverage != nil {
				see(*s.MaxOverAverage - 1)
			}
		}
	}
	see(c.report.MaxImbalance)
	c.lowest, c.highest = c.lowest/2, c.highest*1.3
}

func (c *sizeChart) style() {
	c.Title.Text = fmt.Sprintf("How evenly a ring is balanced: %s", c.report.Subject)
	c.Title.TextStyle.Font, c.Title.Padding = sans(15), 4*vg.Millimeter
	c.X.Min, c.X.Max = c.curves[0].points, c.curves[len(c.curves)-1].points
	c.Y.Min, c.Y.Max = c.lowest, c.highest
	c.X.Tick.Marker = stepTicks{func(x float64) string { return groupDigits(x) }, []float64{1}}
	c.Y.Tick.Marker = stepTicks{func(x float64) string { return imbalanceText(x) }, []float64{1, 2, 5}}
	for _, axis := range []*plot.Axis{&c.X, &c.Y} {
		axis.Scale, axis.Padding = plot.LogScale{}, 0
		axis.Tick.Label.Font = sans(11)
	}
	for i := range c.legends {
		l := &c.legends[i]
		l.TextStyle.Font, l.Top, l.Left = sans(11), true, true
		l.ThumbnailWidth, l.Padding = 1.2*vg.Centimeter, vg.Millimeter
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = chartGrid, chartGrid
	grid.Vertical.Width, grid.Horizontal.Width = vg.Points(1), vg.Points(1)
	c.Add(grid)
}

// stepTicks labels the steps of every power of ten.
type stepTicks struct {
	label func(float64) string
	steps []float64
}

func (t stepTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for power := math.Floor(math.Log10(low)); power <= math.Ceil(math.Log10(high)); power++ {
		for step := 1.0; step < 10; step++ {
			tick := plot.Tick{Value: step * math.Pow10(int(power))}
			if tick.Value < low || tick.Value > high {
				continue // It would not be drawn, but room would be left for its label.
			}
			if slices.Contains(t.steps, step) {
				tick.Label = t.label(tick.Value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// groupDigits prints a whole number with its thousands apart.
func groupDigits(x float64) string {
	s := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func sans(points vg.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, points)
}
