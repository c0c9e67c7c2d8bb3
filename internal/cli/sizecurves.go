// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ringwright/ringwright/internal/plan"
)

// The box of addSteps spans these points for each unit of weight; its text takes so much room from the top.
const (
	boxFew, boxMany = 10_000, 100_000
	boxText         = 2 * vg.Centimeter
)

// addSteps marks the last factor of ten, and says what it is expected to buy for a plain ring. Where the operator builds none of so
// many points it buys nothing.
func (c *sizeChart) addSteps() error {
	at := func(points int) *SizeRung {
		for i := range c.report.Rungs {
			if c.report.Rungs[i].PointsPerWeight == points {
				return &c.report.Rungs[i]
			}
		}
		return nil
	}
	const few, many = boxFew, boxMany
	before, after := at(few), at(many)
	if before == nil || after == nil || after.Plain.Refused {
		return nil
	}
	c.boxed = true
	band, err := plotter.NewPolygon(plotter.XYs{{X: few, Y: c.lowest}, {X: many, Y: c.lowest}, {X: many, Y: c.highest}, {X: few, Y: c.highest}})
	if err != nil {
		return err
	}
	band.Color, band.Width = chartBand, 0
	c.Add(band)
	lines := []string{
		fmt.Sprintf("The last %s points", groupDigits(many-few)),
		fmt.Sprintf("expected: %s to %s", percent(before.Plain.PredictedMaxOverAverage-1, 1), percent(after.Plain.PredictedMaxOverAverage-1, 1)),
		fmt.Sprintf("%s to %s", byteCount(before.Plain.Bytes), byteCount(after.Plain.Bytes)),
	}
	middle := math.Sqrt(few * many)
	for i, line := range lines {
		c.label(line, middle, c.highest, vg.Length(-(0.45+0.55*float64(i)))*vg.Centimeter, draw.XCenter, chartBlack)
	}
	return nil
}

// byteCount prints bytes in units of a thousand or a million.
func byteCount(n uint64) string {
	x, unit := float64(n)/1e3, " kB"
	if x >= 100 {
		x, unit = x/1e3, " MB"
	}
	digits := 0
	if x < 10 {
		digits = 1
	}
	return strconv.FormatFloat(x, 'f', digits, 64) + unit
}

// note is text beside a place of the plot. Unlike plotter.Labels it asks for no room outside of the axes.
type note struct {
	text  string
	x, y  float64
	up    vg.Length
	style text.Style
}

// Plot implements plot.Plotter.
func (n note) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	canvas.FillText(n.style, vg.Point{X: x(n.x), Y: y(n.y) + n.up}, n.text)
}

func (c *sizeChart) label(words string, x, y float64, up vg.Length, align draw.XAlignment, colour color.Color) {
	style := text.Style{Font: sans(11), Color: colour, XAlign: align, YAlign: draw.YCenter, Handler: c.TextHandler}
	c.Add(note{words, x, y, up, style})
}

// addShade fills what ties add to a plain ring, where they add so much that it is seen beside the curves.
func (c *sizeChart) addShade() error {
	const seen = 1.05
	if !slices.ContainsFunc(c.curves, func(p sizeCurve) bool { return p.plain > seen*p.random }) {
		return nil
	}
	var edge plotter.XYs
	for _, p := range c.curves {
		edge = append(edge, plotter.XY{X: p.points, Y: p.plain})
	}
	for _, p := range slices.Backward(c.curves) {
		edge = append(edge, plotter.XY{X: p.points, Y: p.random})
	}
	area, err := plotter.NewPolygon(edge)
	if err != nil {
		return err
	}
	area.Color, area.Width = chartShade, 0
	c.Add(area)
	c.legends[0].Add("what 32-bit collisions and the order of ties add", area)
	return nil
}

// addPredictions draws the curves.
func (c *sizeChart) addPredictions() error {
	for _, curve := range []struct {
		legend int
		name   string
		of     func(sizeCurve) float64
		colour color.Color
		dashes []vg.Length
	}{
		{0, "plain ring (V2), expected", func(p sizeCurve) float64 { return p.plain }, chartOrange, nil},
		{1, "trimmed ring (V3), expected", func(p sizeCurve) float64 { return p.trimmed }, chartBlue, nil},
		{1, "points at random places, expected", func(p sizeCurve) float64 { return p.random }, chartBlack, []vg.Length{vg.Points(2), vg.Points(4)}},
	} {
		var line plotter.XYs
		for _, p := range c.curves {
			if y := curve.of(p); !math.IsNaN(y) {
				line = append(line, plotter.XY{X: p.points, Y: max(y, c.lowest)})
			}
		}
		if len(line) == 0 {
			continue
		}
		l, err := plotter.NewLine(line)
		if err != nil {
			return err
		}
		l.Color, l.Width, l.Dashes = curve.colour, vg.Points(2), curve.dashes
		c.Add(l)
		c.legends[curve.legend].Add(curve.name, l)
	}
	return nil
}

// addMeasurements marks the rings that were built.
func (c *sizeChart) addMeasurements() error {
	for _, series := range []struct {
		legend int
		name   string
		of     func(SizeRung) SizedRing
		colour color.Color
		shape  draw.GlyphDrawer
	}{
		{0, "plain ring, measured", func(r SizeRung) SizedRing { return r.Plain }, chartOrange, draw.CircleGlyph{}},
		{1, "trimmed ring, measured", func(r SizeRung) SizedRing { return r.Trimmed }, chartBlue, draw.PyramidGlyph{}},
	} {
		var marks plotter.XYs
		for _, rung := range c.report.Rungs {
			if ratio := series.of(rung).MaxOverAverage; ratio != nil {
				marks = append(marks, plotter.XY{X: float64(rung.PointsPerWeight), Y: max(*ratio-1, c.lowest)})
			}
		}
		if len(marks) == 0 {
			continue
		}
		s, err := plotter.NewScatter(marks)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: series.colour, Radius: vg.Points(4.5), Shape: series.shape}
		c.Add(s)
		c.legends[series.legend].Add(series.name, s)
	}
	return nil
}

// addMarks draws the wanted imbalance, and where a ConfigMap is full.
func (c *sizeChart) addMarks() error {
	wanted := c.report.MaxImbalance
	if err := c.rule(plotter.XYs{{X: c.X.Min, Y: wanted}, {X: c.X.Max, Y: wanted}}); err != nil {
		return err
	}
	const indent = 1.05
	c.label("wanted: "+imbalanceText(wanted), c.X.Min*indent, wanted, -3*vg.Millimeter, draw.XLeft, chartGrey)
	full := c.report.fullConfigMap()
	if full == 0 {
		return nil
	}
	c.Add(upright{full, c.lowest, c.highest, c.headroom(full), ruleStyle})
	c.label("one ConfigMap is full", full/indent, c.lowest, 3*vg.Millimeter, draw.XRight, chartGrey)
	return nil
}

func (c *sizeChart) rule(ends plotter.XYs) error {
	l, err := plotter.NewLine(ends)
	if err != nil {
		return err
	}
	l.LineStyle = ruleStyle
	c.Add(l)
	return nil
}

var ruleStyle = draw.LineStyle{Color: chartGrey, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(6), vg.Points(3)}}

// headroom is how far below the top a line has to end that would otherwise run through the text of the box.
func (c *sizeChart) headroom(x float64) vg.Length {
	if c.boxed && x > boxFew && x < boxMany {
		return boxText
	}
	return 0
}

// upright is a line that ends some way below a place of the plot.
type upright struct {
	x, low, high float64
	below        vg.Length
	style        draw.LineStyle
}

// Plot implements plot.Plotter.
func (u upright) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	canvas.StrokeLine2(u.style, x(u.x), y(u.low), x(u.x), y(u.high)-u.below)
}

// fullConfigMap returns for how many points for each unit of weight a ConfigMap is full, between two rungs of the ladder; 0 where
// that is not on it.
func (r *SizeReport) fullConfigMap() float64 {
	for i, rung := range r.Rungs {
		if rung.Plain.FitsConfigMap {
			continue
		}
		if i == 0 {
			return 0
		}
		below := r.Rungs[i-1]
		part := float64(plan.ChunkBytes-below.Plain.Bytes) / float64(rung.Plain.Bytes-below.Plain.Bytes)
		return float64(below.PointsPerWeight) + part*float64(rung.PointsPerWeight-below.PointsPerWeight)
	}
	return 0
}
