// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"math"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// sizeCurve is what is predicted for one number of points, for a chart. What the operator does not trim is no number.
type sizeCurve struct{ points, random, plain, trimmed float64 }

// curves predicts along the ladder, in steps that look smooth.
func (s sizing) curves() ([]sizeCurve, error) {
	const steps = 80
	low, high := float64(s.ladder[0]), float64(s.ladder[len(s.ladder)-1])
	var list []sizeCurve
	for i := range steps + 1 {
		points := uint32(math.Round(low * math.Pow(high/low, float64(i)/steps)))
		plain, err := ring.Predict(s.with(ring.V2, points))
		if err != nil {
			break // More points than a ring can have.
		}
		trimmed, err := ring.Predict(s.with(ring.V3, points))
		var tooMany *ring.TooManyPointsError
		if err != nil && !errors.As(err, &tooMany) {
			return nil, err
		}
		p := sizeCurve{float64(points), plain.RandomMaxOverAverage - 1, plain.MaxOverAverage - 1, trimmed.MaxOverAverage - 1}
		if err != nil || trimmed.Points > plan.MaxTrimmedPoints {
			p.trimmed = math.NaN()
		}
		list = append(list, p)
	}
	return list, nil
}
