// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// TestRecipeIsTheSameRing: whoever builds a ring from its recipe finds what the points say, views and trims included.
func TestRecipeIsTheSameRing(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		c := randomConfig(rng)
		if seed%3 == 0 {
			c = withFeatures(trimmed(6+int(seed)/3, 12, 3), 2, 0.7)
		}
		points := mustBuild(t, c)
		recipe, err := ring.Open(points.Recipe())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if points.Encoding() != ring.EncodingPoints || recipe.Encoding() != ring.EncodingRecipe {
			t.Fatalf("seed %d: encodings %s and %s", seed, points.Encoding(), recipe.Encoding())
		}
		if !bytes.Equal(recipe.Snapshot(), points.Recipe()) || !bytes.Equal(recipe.Recipe(), points.Recipe()) {
			t.Fatalf("seed %d: the recipe of the ring that was built from it is another", seed)
		}
		for _, set := range append(points.Views(), points.Features(), nil) {
			from, to := mustView(t, points, set...), mustView(t, recipe, set...)
			if moved := ring.Compare(from, to); moved.Total != 0 || from.Len() != to.Len() {
				t.Fatalf("seed %d, view %q: %d positions have another owner", seed, set, moved.Total)
			}
		}
		if err := recipe.Verify(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if again := mustBuild(t, recipe.Config()); !bytes.Equal(again.Snapshot(), points.Snapshot()) {
			t.Errorf("seed %d: the points that the recipe gives are other bytes", seed)
		}
	}
}

func TestRecipeIsSmall(t *testing.T) {
	r := mustBuild(t, fleet(2048, ring.V1, 160))
	if got := len(r.Recipe()) / r.Len(); got > 24 {
		t.Errorf("%d bytes a backend", got)
	}
	sum := 0
	recipe, err := ring.Open(r.Recipe())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range recipe.Sections() {
		sum += s.Bytes
	}
	if sum != len(recipe.Snapshot()) {
		t.Errorf("the sections have %d bytes, the snapshot %d", sum, len(recipe.Snapshot()))
	}
}

// TestRecipeLimits: a small file must not make its reader build what it did not expect.
func TestRecipeLimits(t *testing.T) {
	c := fleet(3, ring.V2, 100)
	recipe := mustBuild(t, c).Recipe()
	if _, err := ring.OpenWith(recipe, ring.OpenOptions{MaxPoints: 300}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	var tooMany *ring.TooManyPointsError
	if _, err := ring.OpenWith(recipe, ring.OpenOptions{MaxPoints: 299}); !errors.As(err, &tooMany) || tooMany.Points != 300 || tooMany.Limit != 299 {
		t.Errorf("over the limit: %v", err)
	}
	var config *ring.ConfigError
	if _, err := ring.OpenWith(recipe, ring.OpenOptions{MaxPoints: ring.HardMaxPoints + 1}); !errors.As(err, &config) {
		t.Errorf("a limit over the largest: %v", err)
	}
	huge := bytes.Clone(recipe)
	binary.LittleEndian.PutUint32(huge[16:], ring.MaxPointsPerWeight)
	binary.LittleEndian.PutUint32(huge[32:], 3*ring.MaxPointsPerWeight)
	if _, err := ring.Open(reseal(huge)); err == nil || !strings.Contains(err.Error(), "fingerprint") {
		t.Errorf("another number of points: %v", err)
	}
}

// TestRecipeIsRefused where it is not what was written. The rows edit a recipe of one backend with 100 points.
func TestRecipeIsRefused(t *testing.T) {
	recipe := mustBuild(t, fleet(1, ring.V2, 100)).Recipe()
	fingerprint := len(recipe) - 8 - 32
	for name, row := range map[string]struct {
		edit func(b []byte)
		want string
	}{
		"another fingerprint":      {func(b []byte) { b[fingerprint+31]++ }, "fingerprint"},
		"another number of points": {func(b []byte) { b[32]++ }, "point count"},
		"a fingerprint too short":  {func(b []byte) { b[64+24+16], b[fingerprint+31] = 31, 0 }, "fingerprint"},
		"an optional fingerprint":  {func(b []byte) { b[64+24+4] = 1 }, "section flags"},
		"neither points nor fingerprint": {func(b []byte) {
			b[64+24], b[64+24+4] = 6, 1
		}, "section table"},
	} {
		b := bytes.Clone(recipe)
		row.edit(b)
		var format *ring.FormatError
		if _, err := ring.Open(reseal(b)); !errors.As(err, &format) || format.Field != row.want {
			t.Errorf("%s: error %v, want one of the field %q", name, err, row.want)
		}
	}
	both := mustBuild(t, fleet(1, ring.V2, 100)).Snapshot()
	if _, err := ring.Open(withSection(both, 5, 0, make([]byte, 32))); err == nil || !strings.Contains(err.Error(), "section 4 is there: true") {
		t.Errorf("points and a fingerprint: %v", err)
	}
}
