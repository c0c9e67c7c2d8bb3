// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"github.com/ringwright/ringwright/pkg/ring"
)

func (s sizing) advice(version ring.Version) (SizeAdvice, error) {
	c := s.with(version, ring.V1PointsPerWeight)
	c.MaxPoints = most(version)
	advice, err := ring.Advise(c, s.maxImbalance)
	var tooMany *ring.TooManyPointsError
	if errors.As(err, &tooMany) {
		return s.refused(version, tooMany.Points), nil
	}
	if err != nil {
		return SizeAdvice{}, err
	}
	sized, err := s.sized(s.with(version, advice.Algorithm.PointsPerWeight), advice.Prediction)
	if err != nil {
		return SizeAdvice{}, err
	}
	result := SizeAdvice{
		Version: version.String(), Reached: advice.Reached, PointsPerWeight: int(advice.Algorithm.PointsPerWeight),
		Points: advice.Points, SizedRing: sized,
	}
	result.Message = result.text(s, version)
	return result, nil
}

// refused is the advice where the operator does not even build the fewest points.
func (s sizing) refused(version ring.Version, points uint64) SizeAdvice {
	a := SizeAdvice{Version: version.String(), PointsPerWeight: 1, Points: points, SizedRing: SizedRing{Refused: true}}
	if version == ring.V1 {
		a.PointsPerWeight = ring.V1PointsPerWeight
	}
	a.Message = fmt.Sprintf("not to be had: %s are %s in all, the operator %s at most %s",
		s.pointsEach(a.PointsPerWeight), groupDigits(float64(points)), builds(version), groupDigits(float64(most(version))))
	return a
}

// builds says what the operator does with points.
func builds(version ring.Version) string {
	if version == ring.V3 {
		return "trims"
	}
	return "builds"
}

func (s sizing) pointsEach(n int) string {
	return plural(n, "point", "points") + " for " + unitText(max(s.unit, 1))
}

// unitText says what has the points of a rung.
func unitText(unit uint32) string {
	if unit == 1 {
		return "each unit of weight"
	}
	return fmt.Sprintf("a weight of %d", unit)
}

// text says what the advice is, in a sentence.
func (a SizeAdvice) text(s sizing, version ring.Version) string {
	wanted, points := imbalanceText(float64(s.maxImbalance)/1e6), s.pointsEach(a.PointsPerWeight)
	measured := ""
	if a.MaxOverAverage != nil {
		measured = fmt.Sprintf(", %.3f measured", *a.MaxOverAverage)
	}
	result := fmt.Sprintf("max/avg %.3f predicted%s; %s", a.PredictedMaxOverAverage, measured, a.bytesText())
	switch {
	case version == ring.V1 && !a.Reached:
		return fmt.Sprintf("%s is not to be expected of its %s, and it has no others: %s", wanted, points, result)
	case version == ring.V1:
		return fmt.Sprintf("%s is to be expected of its %s: %s", wanted, points, result)
	case a.Reached:
		return fmt.Sprintf("%s is to be expected with %s: %s", wanted, points, result)
	case s.bounded(version, a.PointsPerWeight):
		return fmt.Sprintf("%s is not to be expected within the %s points that the operator %s; the best within them is %s: %s",
			wanted, groupDigits(float64(most(version))), builds(version), points, result)
	default:
		return fmt.Sprintf("%s is not to be expected with any number of points, %s come closest: %s", wanted, points, result)
	}
}

// bounded says that one more point for each unit of weight is more than the operator builds.
func (s sizing) bounded(version ring.Version, pointsPerWeight int) bool {
	if pointsPerWeight == ring.MaxPointsPerWeight {
		return false
	}
	p, err := ring.Predict(s.with(version, uint32(pointsPerWeight)+1))
	return err != nil || p.Points > most(version)
}

// imbalanceText prints an imbalance as it is given on the command line.
func imbalanceText(x float64) string { return fmt.Sprintf("%g%%", round(x*100, 4)) }
