// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// SizeReport is what "size" prints. Imbalances and ratios are fractions, of six decimals.
type SizeReport struct {
	// Subject says which backends it is about, as text; Backends is how many have a weight above 0, Weight the sum of them.
	Subject  string `json:"subject"`
	Backends int    `json:"backends"`
	Weight   uint64 `json:"weight"`
	// WeightUnit is the weight that has the points of a rung. V1 and V2 have no such unit: theirs are rings of weights divided by
	// it, rounded and at least 1, so that all have about as many points.
	WeightUnit uint32 `json:"weightUnit"`
	// MaxImbalance is what was asked for: 0.05 is 5 %.
	MaxImbalance float64 `json:"maxImbalance"`
	// MeasuredPoints is up to how many points rings were built; what is larger has no measured ratio.
	MeasuredPoints uint64     `json:"measuredPoints"`
	Rungs          []SizeRung `json:"rungs"`
	// LeftOut are the rungs of more points than any ring can have.
	LeftOut []LeftOutRung `json:"leftOut,omitempty"`
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

// LeftOutRung is a rung that no ring has.
type LeftOutRung struct {
	PointsPerWeight int    `json:"pointsPerWeight"`
	Points          uint64 `json:"points"`
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
	// Encoding and Chunks are how it is published with encoding Auto and as many chunks as it takes, up to 16: Points, or where
	// they do not take it Recipe, of RecipeBytes.
	Encoding    string `json:"encoding,omitempty"`
	Chunks      int    `json:"chunks,omitempty"`
	RecipeBytes uint64 `json:"recipeBytes"`
	// Refused says that the operator does not build a ring of so many points; it is not measured then.
	Refused bool `json:"refused,omitempty"`
}

// SizeAdvice is how the wanted imbalance is reached under a version or, where it is not, what comes closest.
type SizeAdvice struct {
	Version string `json:"version"`
	// Reached says that the predicted ratio is within the wanted imbalance. Where even the fewest points are refused, they are
	// counted and nothing is predicted.
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
	// unit is the weight that has the points of a rung; 0 is 1.
	unit uint32
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
		c.Algorithm.WeightUnit, c.Algorithm.MaxImbalance = max(s.unit, 1), s.maxImbalance
	} else if s.unit > 1 {
		c.Backends = s.inUnits()
	}
	return c
}

// inUnits returns the backends with weights that are multiples of the unit, of which a ring without one has as many points.
func (s sizing) inUnits() []ring.Backend {
	backends := slices.Clone(s.config.Backends)
	for i, b := range backends {
		if b.Weight > 0 {
			backends[i].Weight = max((b.Weight+s.unit/2)/s.unit, 1)
		}
	}
	return backends
}

// most is how many points the operator builds.
func most(version ring.Version) uint64 {
	if version == ring.V3 {
		return plan.MaxTrimmedPoints
	}
	return plan.MaxPoints
}

func (s sizing) report(ctx context.Context) (*SizeReport, error) {
	report := &SizeReport{
		WeightUnit: max(s.unit, 1),
		Subject:    s.subject, MaxImbalance: float64(s.maxImbalance) / 1e6, MeasuredPoints: s.measured,
	}
	for _, b := range s.config.Backends {
		if b.Weight > 0 {
			report.Backends++
			report.Weight += uint64(b.Weight)
		}
	}
	weight := uint64(0)
	for _, b := range s.with(ring.V2, 1).Backends {
		weight += uint64(b.Weight)
	}
	for _, points := range s.ladder {
		if all := weight * uint64(points); all > ring.HardMaxPoints {
			report.LeftOut = append(report.LeftOut, LeftOutRung{points, all})
			continue
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
		var tooMany *ring.TooManyPointsError
		if version == ring.V3 && errors.As(err, &tooMany) { // It does not round as V2 in units does.
			rung.Trimmed.Refused = true
			continue
		}
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
		RecipeBytes: p.RecipeBytes, Refused: p.Points > most(c.Algorithm.Version),
	}
	if !sized.Refused {
		sized.publish()
	}
	if p.Points > s.measured || sized.Refused {
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
