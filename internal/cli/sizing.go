// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"math"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// SizeReport is what "size" prints. Imbalances and ratios are fractions, of six decimals.
type SizeReport struct {
	// Subject says which backends it is about, as text; Backends is how many have a weight above 0, Weight the sum of them.
	Subject  string `json:"subject"`
	Backends int    `json:"backends"`
	Weight   uint64 `json:"weight"`
	// MaxImbalance is what was asked for: 0.05 is 5 %.
	MaxImbalance float64 `json:"maxImbalance"`
	// MeasuredPoints is up to how many points rings were built; what is larger has no measured ratio.
	MeasuredPoints uint64     `json:"measuredPoints"`
	Rungs          []SizeRung `json:"rungs"`
	// Advice is one for each version.
	Advice []SizeAdvice `json:"advice"`
}

// SizeRung is what some number of points for each unit of weight gives and costs.
type SizeRung struct {
	PointsPerWeight int    `json:"pointsPerWeight"`
	Points          uint64 `json:"points"`
	// PredictedMaxOverAverage is what theory expects of points at random places.
	PredictedMaxOverAverage float64 `json:"predictedMaxOverAverage"`
	// PredictedCoefficientOfVariation is that of a plain ring, which ties make larger where points are very many.
	PredictedCoefficientOfVariation float64 `json:"predictedCoefficientOfVariation"`
	// PredictedCollisions is how many points lose a tie, because their hashes have 32 bits.
	PredictedCollisions float64 `json:"predictedCollisions"`
	// Plain is a ring of V2, Trimmed one of V3 with the wanted imbalance as its limit.
	Plain   SizedRing `json:"plain"`
	Trimmed SizedRing `json:"trimmed"`
}

// SizedRing is a ring of one version.
type SizedRing struct {
	// PredictedMaxOverAverage takes in what ties and trims do, Bytes is the expected length of the snapshot.
	PredictedMaxOverAverage float64 `json:"predictedMaxOverAverage"`
	// MaxOverAverage is that of the ring, absent where it was not built.
	MaxOverAverage *float64 `json:"maxOverAverage,omitempty"`
	Bytes          uint64   `json:"bytes"`
	// FitsConfigMap says that one ConfigMap takes it.
	FitsConfigMap bool `json:"fitsConfigMap"`
}

// SizeAdvice is how the wanted imbalance is reached under a version or, where it is not, what comes closest.
type SizeAdvice struct {
	Version string `json:"version"`
	// Reached says that the predicted ratio is within the wanted imbalance.
	Reached         bool   `json:"reached"`
	PointsPerWeight int    `json:"pointsPerWeight"`
	Points          uint64 `json:"points"`
	SizedRing
	// Message says it in a sentence.
	Message string `json:"message"`
}

// sizeLadder are the points for each unit of weight that are asked about where nobody says.
var sizeLadder = []int{10, 20, 40, 80, 160, 400, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000}

// sizing is a question about the size of a ring.
type sizing struct {
	subject string
	// config has the backends; its algorithm is chosen here.
	config       ring.Config
	maxImbalance uint32
	// ladder are the points for each unit of weight, ascending.
	ladder []int
	// measured is up to how many points rings are built.
	measured uint64
}

func (s sizing) with(version ring.Version, pointsPerWeight uint32) ring.Config {
	c := s.config
	c.MaxPoints = ring.HardMaxPoints
	c.Algorithm = ring.Algorithm{Version: version, PointsPerWeight: pointsPerWeight}
	if version == ring.V3 {
		c.Algorithm.WeightUnit, c.Algorithm.MaxImbalance = 1, s.maxImbalance
	}
	return c
}

func (s sizing) report(ctx context.Context) (*SizeReport, error) {
	report := &SizeReport{
		Subject: s.subject, MaxImbalance: float64(s.maxImbalance) / 1e6, MeasuredPoints: s.measured,
	}
	for _, b := range s.config.Backends {
		if b.Weight > 0 {
			report.Backends++
			report.Weight += uint64(b.Weight)
		}
	}
	for _, points := range s.ladder {
		if report.Weight*uint64(points) > ring.HardMaxPoints {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rung, err := s.rung(uint32(points))
		if err != nil {
			return nil, err
		}
		report.Rungs = append(report.Rungs, rung)
	}
	for _, version := range []ring.Version{ring.V1, ring.V2, ring.V3} {
		advice, err := s.advice(version)
		if err != nil {
			return nil, err
		}
		report.Advice = append(report.Advice, advice)
	}
	return report, nil
}

func (s sizing) rung(points uint32) (SizeRung, error) {
	rung := SizeRung{PointsPerWeight: int(points)}
	for _, version := range []ring.Version{ring.V2, ring.V3} {
		c := s.with(version, points)
		p, err := ring.Predict(c)
		if err != nil {
			return SizeRung{}, err
		}
		sized, err := s.sized(c, p)
		if err != nil {
			return SizeRung{}, err
		}
		if version == ring.V3 {
			rung.Trimmed = sized
			continue
		}
		rung.Plain, rung.Points = sized, p.Points
		rung.PredictedCoefficientOfVariation, rung.PredictedMaxOverAverage = round(p.CV, 6), round(p.RandomMaxOverAverage, 6)
		rung.PredictedCollisions = round(p.Collisions, 6)
	}
	return rung, nil
}

// sized describes a ring of which p was predicted, and builds it where it is not too large.
func (s sizing) sized(c ring.Config, p ring.Prediction) (SizedRing, error) {
	sized := SizedRing{
		PredictedMaxOverAverage: round(p.MaxOverAverage, 6), Bytes: p.Bytes, FitsConfigMap: p.Bytes <= plan.ChunkBytes,
	}
	if p.Points > s.measured {
		return sized, nil
	}
	r, err := ring.Build(c)
	if err != nil {
		return SizedRing{}, err
	}
	ratio := round(r.Stats().MaxOverAverage, 6)
	sized.MaxOverAverage = &ratio
	return sized, nil
}

func (s sizing) advice(version ring.Version) (SizeAdvice, error) {
	advice, err := ring.Advise(s.with(version, ring.V1PointsPerWeight), s.maxImbalance)
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
	result.Message = result.text(s.maxImbalance, version)
	return result, nil
}

// text says what the advice is, in a sentence.
func (a SizeAdvice) text(limit uint32, version ring.Version) string {
	wanted := imbalanceText(float64(limit) / 1e6)
	points := plural(a.PointsPerWeight, "point", "points") + " for each unit of weight"
	measured := ""
	if a.MaxOverAverage != nil {
		measured = fmt.Sprintf(", %.3f measured", *a.MaxOverAverage)
	}
	result := fmt.Sprintf("max/avg %.3f predicted%s; %d bytes, %s of a ConfigMap",
		a.PredictedMaxOverAverage, measured, a.Bytes, percent(float64(a.Bytes)/plan.ChunkBytes, 1))
	switch {
	case version == ring.V1 && !a.Reached:
		return fmt.Sprintf("%s is not to be expected of its %s, and it has no others: %s", wanted, points, result)
	case version == ring.V1:
		return fmt.Sprintf("%s is to be expected of its %s: %s", wanted, points, result)
	case a.Reached:
		return fmt.Sprintf("%s is to be expected with %s: %s", wanted, points, result)
	default:
		return fmt.Sprintf("%s is not to be expected with any number of points, %s come closest: %s", wanted, points, result)
	}
}

// imbalanceText prints an imbalance as it is given on the command line.
func imbalanceText(x float64) string { return fmt.Sprintf("%g%%", round(x*100, 4)) }

// sizeCurve is what is predicted for one number of points, for a chart.
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
		if err != nil {
			return nil, err
		}
		list = append(list, sizeCurve{float64(points), plain.RandomMaxOverAverage - 1, plain.MaxOverAverage - 1, trimmed.MaxOverAverage - 1})
	}
	return list, nil
}
