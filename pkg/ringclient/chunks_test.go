// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// chunked returns a publication of slot a in chunks.
func chunked(generation int64, r *ring.Ring, chunks int) publication {
	p := published(generation, r)
	p.chunks = chunks
	return p
}

// recipeOf returns the ring as its readers build it from its recipe.
func recipeOf(t testing.TB, r *ring.Ring) *ring.Ring {
	t.Helper()
	recipe, err := ring.Open(r.Recipe())
	if err != nil {
		t.Fatal(err)
	}
	return recipe
}

// volumes mounts each file of a chunked publication as the volume of its own ConfigMap.
func volumes(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for chunk := range routing.MaxChunks {
		name := routing.SlotA.ChunkFileName(chunk)
		if content, ok := files[name]; ok {
			mount(t, filepath.Join(dir, routing.SlotA.ChunkFolder(chunk)), map[string][]byte{name: content})
		}
	}
	mount(t, filepath.Join(dir, "b"), map[string][]byte{"ring-b.snap": files["ring-b.snap"]})
	mount(t, filepath.Join(dir, "routing"), map[string][]byte{"routing.json": files["routing.json"]})
}

// TestChunks follows a ring that grows into chunks and shrinks again, in each layout.
func TestChunks(t *testing.T) {
	rings := []*ring.Ring{addressRing(t, 5), addressRing(t, 6)}
	for name, lay := range map[string]func(t testing.TB, dir string, files map[string][]byte){
		"one volume": mount, "a volume for each": volumes, "plain directory": writePlain,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lay(t, dir, chunked(1, rings[1], 3).files(t))
			c := open(t, dir, ringclient.Options{})
			checkAnswers(t, c, 1, rings[1])
			for i, chunks := range []int{1, 16, 2, 2, 5, 1} {
				generation := int64(i + 2)
				lay(t, dir, chunked(generation, rings[i%2], chunks).files(t))
				waitForGeneration(t, c, generation)
				checkAnswers(t, c, generation, rings[i%2])
			}
		})
	}
}

// TestSpareChunks: a file that routing.json does not count is not read, whatever is in it.
func TestSpareChunks(t *testing.T) {
	r := addressRing(t, 5)
	files := chunked(1, r, 2).files(t)
	files["ring-a.snap.2"], files["ring-a.snap.3"] = nil, []byte("left over")
	dir := t.TempDir()
	mount(t, dir, files)
	checkAnswers(t, open(t, dir, ringclient.Options{}), 1, r)
}

// TestBrokenChunks keeps the last good ring, and names the file that is wrong.
func TestBrokenChunks(t *testing.T) {
	first, second := addressRing(t, 9), addressRing(t, 8)
	good := chunked(6, second, 3).files(t)
	with := func(name string, content []byte) map[string][]byte {
		files := maps.Clone(good)
		files[name] = content
		if content == nil {
			delete(files, name)
		}
		return files
	}
	size := len(second.Snapshot())
	for name, tc := range map[string]struct {
		bad   map[string][]byte
		limit int64
		want  ringclient.LoadError
	}{
		"missing": {with("ring-a.snap.2", nil), 0, ringclient.LoadError{Reason: ringclient.ReasonMissing, File: "ring-a.snap.2"}},
		"empty":   {with("ring-a.snap.1", []byte{}), 0, ringclient.LoadError{Reason: ringclient.ReasonDigest, File: "ring-a.snap.1"}},
		"of another moment": {
			with("ring-a.snap.1", chunked(5, first, 3).files(t)["ring-a.snap.1"]), 0,
			ringclient.LoadError{Reason: ringclient.ReasonDigest, File: "ring-a.snap", Limit: second.Digest()},
		},
		"too large together": {
			good, int64(size) - 1,
			ringclient.LoadError{Reason: ringclient.ReasonTooLarge, File: "ring-a.snap.2", Value: fmt.Sprint(size), Limit: fmt.Sprint(size - 1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			small := published(5, addressRing(t, 1))
			mount(t, dir, small.files(t))
			c := open(t, dir, ringclient.Options{MaxSnapshotBytes: tc.limit})
			mount(t, dir, tc.bad)
			eventually(t, "the failure", func() bool { return c.Stats().LastError != nil })
			checkAnswers(t, c, 5, small.snapshot)
			tc.want.File = filepath.Join(dir, tc.want.File)
			if tc.want.Reason == ringclient.ReasonDigest && tc.want.Limit != "" {
				tc.want.Value = ring.Digest([]byte(string(tc.bad["ring-a.snap"]) + string(tc.bad["ring-a.snap.1"]) + string(tc.bad["ring-a.snap.2"])))
			}
			checkRefused(t, dir, ringclient.Options{MaxSnapshotBytes: tc.limit}, tc.want)
			if tc.limit > 0 {
				return
			}
			mount(t, dir, good)
			waitForGeneration(t, c, 6)
			checkAnswers(t, c, 6, second)
		})
	}
}

// TestRecipe: a client builds the ring of a recipe, and answers as one that has the points.
func TestRecipe(t *testing.T) {
	points, other := addressRing(t, 9), addressRing(t, 8)
	recipe := recipeOf(t, points)
	dir := t.TempDir()
	mount(t, dir, chunked(1, recipe, 2).files(t))
	c := open(t, dir, ringclient.Options{})
	for i := range 1000 {
		key := fmt.Sprintf("key-%d", i)
		for _, features := range [][]string{nil, {"eu"}, {"eu", "ssd"}} {
			got, err := c.Lookup([]byte(key), features, 3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(owners(t, points, key, 3, features...), ids(got)); diff != "" {
				t.Fatalf("owners of %s with %q (-want +got):\n%s", key, features, diff)
			}
		}
	}
	if held := c.Stats().BytesHeld; held < int64(ring.PackedBytes(uint32(points.PointCount()), points.Len())) {
		t.Errorf("%d bytes are said to be held, the points that were built have more", held)
	}
	mount(t, dir, published(2, other).files(t))
	waitForGeneration(t, c, 2)
	mount(t, dir, published(3, recipe).files(t))
	waitForGeneration(t, c, 3)
	checkAnswers(t, c, 3, recipe)
}

// TestRecipeIsProved: a recipe that does not give the ring that was published is refused, though its digest is right.
func TestRecipeIsProved(t *testing.T) {
	recipe := addressRing(t, 9).Recipe()
	forged := resealed(recipe, len(recipe)-8-1) // The last byte of the fingerprint.
	p := published(1, recipeOf(t, addressRing(t, 9)))
	files := p.files(t)
	files["ring-a.snap"] = forged
	files["routing.json"] = []byte(replaced(t, string(files["routing.json"]), p.snapshot.Digest(), ring.Digest(forged)))
	dir := t.TempDir()
	mount(t, dir, files)
	checkRefused(t, dir, ringclient.Options{}, ringclient.LoadError{Reason: ringclient.ReasonSnapshot, File: filepath.Join(dir, "ring-a.snap")})
	var format *ring.FormatError
	if _, err := ringclient.Open(dir, ringclient.Options{}); !errors.As(err, &format) || format.Field != "fingerprint" {
		t.Errorf("error %v, want one of the fingerprint", err)
	}
}

func TestRecipeAtItsLimit(t *testing.T) {
	recipe := recipeOf(t, addressRing(t, 9))
	dir := t.TempDir()
	mount(t, dir, published(1, recipe).files(t))
	points := uint64(recipe.PointCount())
	checkAnswers(t, open(t, dir, ringclient.Options{MaxPoints: points}), 1, recipe)
	checkRefused(t, dir, ringclient.Options{MaxPoints: points - 1}, ringclient.LoadError{
		Reason: ringclient.ReasonPoints, File: filepath.Join(dir, "ring-a.snap"), Value: fmt.Sprint(points), Limit: fmt.Sprint(points - 1),
	})
}
