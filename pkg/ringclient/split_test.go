// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// migration returns a publication that gives basis points of datacenter lab to a candidate.
func migration(generation int64, stable, candidate *ring.Ring, basisPoints int) publication {
	p := published(generation, stable)
	p.candidate, p.revisions = candidate, [2]int64{7, 8}
	p.split = &routing.Split{Seed: 2654435769, BasisPoints: map[string]int{"lab": basisPoints, "*": 0}}
	return p
}

func splitKey(i int) []byte { return fmt.Appendf(nil, "/objects/%d", i) }

// onCandidate returns for many keys whether the candidate answers them, and checks that each answer is that of its ring.
func onCandidate(t *testing.T, c *ringclient.Client, keys int, stable, candidate *ring.Ring) []bool {
	t.Helper()
	list := make([]bool, keys)
	for i := range list {
		key := splitKey(i)
		d, err := c.Pick(key)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = d.Role() == ringclient.Candidate
		r, revision := stable, int64(7)
		if list[i] {
			r, revision = candidate, 8
		}
		if want := owners(t, r, string(key), 1)[0]; d.ID() != want || d.Digest() != r.Digest() || d.Revision() != revision {
			t.Fatalf("key %d, %v: %s of revision %d, want %s of %d", i, d.Role(), d.ID(), d.Revision(), want, revision)
		}
		several, err := c.Lookup(key, nil, 2)
		if err != nil || several[0] != d || several[1].Role() != d.Role() {
			t.Fatalf("key %d: Lookup and Pick differ, %v", i, err)
		}
	}
	return list
}

// TestSplit raises the share in steps: the part of the keys that the candidate answers is that share, and no key goes back.
func TestSplit(t *testing.T) {
	stable, candidate := addressRing(t, 9), addressRing(t, 12)
	dir := t.TempDir()
	mount(t, dir, migration(1, stable, candidate, 0).files(t))
	lab := open(t, dir, ringclient.Options{Datacenter: "lab"})
	other := open(t, dir, ringclient.Options{Datacenter: "other"})
	nowhere := open(t, dir, ringclient.Options{})
	const keys = 10_000
	last := make([]bool, keys)
	for step, basisPoints := range []int{0, 1, 50, 1_000, 5_000, 9_999, 10_000} {
		generation := int64(step + 2)
		mount(t, dir, migration(generation, stable, candidate, basisPoints).files(t))
		waitForGeneration(t, lab, generation)
		if got := lab.State().BasisPoints(); got != basisPoints {
			t.Errorf("%d basis points, want %d", got, basisPoints)
		}
		now, count := onCandidate(t, lab, keys, stable, candidate), 0
		for i, on := range now {
			if last[i] && !on {
				t.Fatalf("at %d basis points key %d went back", basisPoints, i)
			}
			if bucket, ok := lab.State().Bucket(splitKey(i)); !ok || on != (bucket < basisPoints) {
				t.Fatalf("key %d of bucket %d is on the candidate: %v", i, bucket, on)
			}
			if on {
				count++
			}
		}
		share := float64(basisPoints) / routing.MaxBasisPoints
		if deviation := math.Abs(float64(count) - keys*share); deviation > 5*math.Sqrt(keys*share*(1-share)) {
			t.Errorf("at %d basis points %d of %d keys are on the candidate", basisPoints, count, keys)
		}
		last = now
	}
	for name, c := range map[string]*ringclient.Client{"another datacenter": other, "no datacenter": nowhere} {
		waitForGeneration(t, c, 8)
		for i, on := range onCandidate(t, c, 100, stable, candidate) {
			if on {
				t.Errorf("%s: key %d is on the candidate", name, i)
			}
		}
	}
}

// TestCandidateWithoutAnAnswer falls back to the stable ring, for a feature that the candidate does not declare and for one that none
// of its backends has.
func TestCandidateWithoutAnAnswer(t *testing.T) {
	config := func(features []string, has ...string) ring.Config {
		return ring.Config{
			Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 40}, Identity: ring.IdentityAddress, Features: features,
			Backends: []ring.Backend{{ID: "10.0.0.1:80", Weight: 1, Features: has}},
		}
	}
	stable := build(t, config([]string{"eu"}, "eu"))
	for name, candidate := range map[string]*ring.Ring{
		"not declared":  build(t, config(nil)),
		"nobody has it": build(t, config([]string{"eu"})),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mount(t, dir, migration(1, stable, candidate, routing.MaxBasisPoints).files(t))
			c := open(t, dir, ringclient.Options{Datacenter: "lab"})
			d, err := c.Pick([]byte("key"), "eu")
			if err != nil || d.Role() != ringclient.Stable {
				t.Errorf("with the feature: %v, %v", d.Role(), err)
			}
			several, err := c.Lookup([]byte("key"), []string{"eu"}, 3)
			if err != nil || len(several) != 1 || several[0].Role() != ringclient.Stable {
				t.Errorf("several with the feature: %d, %v", len(several), err)
			}
			if d, err = c.Pick([]byte("key")); err != nil || d.Role() != ringclient.Candidate {
				t.Errorf("without a feature: %v, %v", d.Role(), err)
			}
			var unknown *ring.UnknownFeatureError
			if _, err := c.Pick([]byte("key"), "gpu"); !errors.As(err, &unknown) {
				t.Errorf("a feature that neither declares: %v", err)
			}
		})
	}
}

// TestBothRingsOrNone keeps what is loaded while the candidate is not there as it shall be.
func TestBothRingsOrNone(t *testing.T) {
	stable, candidate := addressRing(t, 9), addressRing(t, 12)
	good := migration(2, stable, candidate, 5_000).files(t)
	for name, broken := range map[string][]byte{
		"empty slot": ring.EmptySlot(), "another ring": addressRing(t, 3).Snapshot(), "half of it": candidate.Snapshot()[:500],
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mount(t, dir, published(1, stable).files(t))
			c, err := ringclient.NewUnstarted(dir, ringclient.Options{Datacenter: "lab"})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.LoadNow(); err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{"ring-b.snap": broken, "ring-a.snap": good["ring-a.snap"], "routing.json": good["routing.json"]}
			mount(t, dir, files)
			if err := c.LoadNow(); err == nil || c.State().Generation() != 1 {
				t.Fatalf("generation %d, %v", c.State().Generation(), err)
			}
			mount(t, dir, good)
			if err := c.LoadNow(); err != nil || c.State().Generation() != 2 {
				t.Fatalf("generation %d, %v", c.State().Generation(), err)
			}
		})
	}
}

// TestRolesChange: when a migration ends the candidate becomes the stable ring, which is not opened again.
func TestRolesChange(t *testing.T) {
	stable, candidate := addressRing(t, 9), addressRing(t, 12)
	dir := t.TempDir()
	mount(t, dir, migration(1, stable, candidate, 10_000).files(t))
	c, err := ringclient.NewUnstarted(dir, ringclient.Options{Datacenter: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.LoadNow(); err != nil {
		t.Fatal(err)
	}
	both, _ := c.State().Candidate()
	held := c.Stats().BytesHeld
	p := published(2, candidate)
	p.slot = routing.SlotB
	mount(t, dir, p.files(t))
	if err := c.LoadNow(); err != nil {
		t.Fatal(err)
	}
	if now, still := c.State().Candidate(); still || c.State().Stable().Ring != both.Ring {
		t.Errorf("candidate %v; the stable ring was opened again: %v", now, c.State().Stable().Ring != both.Ring)
	}
	if now := c.Stats().BytesHeld; now >= held {
		t.Errorf("%d bytes are held without the old ring, %d with it", now, held)
	}
}

// TestFencing takes the files of a leader, and refuses those of one that was deposed.
func TestFencing(t *testing.T) {
	type at struct{ epoch, generation int64 }
	rows := map[string]struct {
		from, to at
		uid      string
		taken    bool
	}{
		"the next generation":             {at{3, 5}, at{3, 6}, "u", true},
		"an earlier one":                  {at{3, 5}, at{3, 4}, "u", false},
		"an earlier leader":               {at{3, 5}, at{2, 6}, "u", false},
		"a later leader":                  {at{3, 5}, at{4, 6}, "u", true},
		"a later leader, behind":          {at{3, 5}, at{4, 2}, "u", true},
		"no leader any more":              {at{3, 5}, at{0, 6}, "u", false},
		"the first leader":                {at{0, 5}, at{1, 6}, "u", true},
		"another HashRing of that name":   {at{3, 5}, at{1, 1}, "other", true},
		"the same again, as it was built": {at{3, 5}, at{3, 5}, "u", true},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			publish := func(a at, uid string, backends int) {
				p := published(a.generation, addressRing(t, backends))
				p.epoch, p.uid = a.epoch, uid
				mount(t, dir, p.files(t))
			}
			publish(row.from, "u", 3)
			c, err := ringclient.NewUnstarted(dir, ringclient.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.LoadNow(); err != nil {
				t.Fatal(err)
			}
			publish(row.to, row.uid, 4)
			err = c.LoadNow()
			var refused *ringclient.LoadError
			if !row.taken && (!errors.As(err, &refused) || refused.Reason != ringclient.ReasonRegression) || row.taken && err != nil {
				t.Fatalf("error %v", err)
			}
			want := map[bool]at{true: row.to, false: row.from}[row.taken]
			if s := c.State(); (at{s.LeaderEpoch(), s.Generation()}) != want {
				t.Errorf("epoch %d, generation %d, want %+v", s.LeaderEpoch(), s.Generation(), want)
			}
		})
	}
}

func TestForce(t *testing.T) {
	stable, candidate := addressRing(t, 9), addressRing(t, 12)
	dir := t.TempDir()
	mount(t, dir, migration(1, stable, candidate, 0).files(t))
	c := open(t, dir, ringclient.Options{Datacenter: "lab", Force: ringclient.ForceCandidate})
	count := func() int {
		n := 0
		for _, on := range onCandidate(t, c, 200, stable, candidate) {
			if on {
				n++
			}
		}
		return n
	}
	if n := count(); n != 200 || c.State().Forced() != ringclient.ForceCandidate || c.State().BasisPoints() != 0 ||
		c.State().EffectiveBasisPoints() != 10_000 {
		t.Errorf("forced from the start: %d of 200 keys are on the candidate", n)
	}
	mount(t, dir, migration(2, stable, candidate, 10_000).files(t))
	waitForGeneration(t, c, 2)
	for force, want := range map[ringclient.Force]int{ringclient.ForceStable: 0, ringclient.ForceCandidate: 200, ringclient.ForceNone: 200} {
		if err := c.SetForce(force); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != want || c.State().Forced() != force || c.State().BasisPoints() != 10_000 {
			t.Errorf("force %q: %d of 200 keys are on the candidate, want %d", force, n, want)
		}
	}
	if err := c.SetForce(ringclient.ForceStable); err != nil {
		t.Fatal(err)
	}
	mount(t, dir, migration(3, stable, candidate, 10_000).files(t))
	waitForGeneration(t, c, 3)
	if n := count(); n != 0 {
		t.Errorf("after a load %d keys are on the candidate", n)
	}
	if err := c.SetForce(ringclient.ForceCandidate); err != nil {
		t.Fatal(err)
	}
	mount(t, dir, published(4, stable).files(t))
	waitForGeneration(t, c, 4)
	if d, err := c.Pick([]byte("key")); err != nil || d.Role() != ringclient.Stable {
		t.Errorf("the candidate is forced and there is none: %v, %v", d.Role(), err)
	}
	var wrong *ringclient.OptionError
	if err := c.SetForce(3); !errors.As(err, &wrong) || wrong.Field != "Force" {
		t.Errorf("an unknown force: %v", err)
	}
}

// TestCandidateForcedWithoutASplit is a migration that has been prepared and not begun.
func TestCandidateForcedWithoutASplit(t *testing.T) {
	stable, candidate := addressRing(t, 9), addressRing(t, 12)
	dir := t.TempDir()
	p := migration(1, stable, candidate, 0)
	p.split = nil
	mount(t, dir, p.files(t))
	c := open(t, dir, ringclient.Options{})
	for force, want := range map[ringclient.Force]ringclient.Role{
		ringclient.ForceNone: ringclient.Stable, ringclient.ForceCandidate: ringclient.Candidate,
	} {
		if err := c.SetForce(force); err != nil {
			t.Fatal(err)
		}
		if d, err := c.Pick([]byte("key")); err != nil || d.Role() != want {
			t.Errorf("force %q: %v, %v", force, d.Role(), err)
		}
	}
}
