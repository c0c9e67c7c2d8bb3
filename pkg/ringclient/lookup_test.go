// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

func TestLookupAnswersAsTheRing(t *testing.T) {
	r := addressRing(t, 12)
	dir := t.TempDir()
	mount(t, dir, published(3, r).files(t))
	c := open(t, dir, ringclient.Options{})
	for name, tc := range map[string]struct {
		features []string
		n, want  int
	}{
		"owner":                  {nil, 1, 1},
		"three":                  {nil, 3, 3},
		"more than there are":    {nil, ringclient.MaxOwners, 12},
		"one feature":            {[]string{"eu"}, 2, 2},
		"two features":           {[]string{"ssd", "eu"}, 5, 2},
		"features given twice":   {[]string{"eu", "eu", "ssd"}, 1, 1},
		"features in no order":   {[]string{"eu", "ssd"}, 1, 1},
		"empty list of features": {[]string{}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 100 {
				key := fmt.Sprintf("key-%d", i)
				got, err := c.Lookup([]byte(key), tc.features, tc.n)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(owners(t, r, key, tc.n, tc.features...), ids(got)); diff != "" || len(got) != tc.want {
					t.Fatalf("%d owners of %s (-want +got):\n%s", len(got), key, diff)
				}
			}
		})
	}
	if got := c.Stats().Selections; got != 800 {
		t.Errorf("%d selections were counted, want 800", got)
	}
}

func TestLookupFails(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, published(3, addressRing(t, 12)).files(t))
	c := open(t, dir, ringclient.Options{})
	for name, tc := range map[string]struct {
		features []string
		n        int
		want     error
	}{
		"no owner asked for": {nil, 0, &ringclient.OwnerCountError{Count: 0}},
		"too many owners":    {nil, ringclient.MaxOwners + 1, &ringclient.OwnerCountError{Count: 65}},
		"unknown feature":    {[]string{"eu", "gpu"}, 1, &ring.UnknownFeatureError{Name: "gpu", Declared: []string{"eu", "none", "ssd"}}},
		"nobody has it":      {[]string{"none"}, 1, ring.ErrNoBackend},
		"nobody of several":  {[]string{"none"}, 2, ring.ErrNoBackend},
	} {
		t.Run(name, func(t *testing.T) {
			kept := make([]ringclient.Decision, 1, 4)
			got, err := c.AppendDecisions(kept, []byte("key"), tc.features, tc.n)
			if err == nil || err.Error() != tc.want.Error() || fmt.Sprintf("%T", err) != fmt.Sprintf("%T", tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if len(got) != 1 || got[0] != (ringclient.Decision{}) {
				t.Errorf("dst changed: it has %d elements", len(got))
			}
		})
	}
	if got := c.Stats().Selections; got != 0 {
		t.Errorf("%d failed lookups were counted as selections", got)
	}
}

// TestUncounted: the same answers and errors as those of lookups that count, with one passed over and with nobody.
func TestUncounted(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, published(3, addressRing(t, 12)).files(t))
	c := open(t, dir, ringclient.Options{})
	check := func(want ringclient.Stats) {
		t.Helper()
		for n := range ringclient.MaxOwners + 2 {
			for _, features := range [][]string{nil, {"eu"}, {"none"}} {
				before := c.Stats()
				got, err := c.State().AppendUncounted(nil, []byte("key"), features, n)
				if after := c.Stats(); after.Selections != before.Selections || after.Failovers != before.Failovers {
					t.Fatalf("n=%d: counted", n)
				}
				counted, wantErr := c.Lookup([]byte("key"), features, n)
				if !slices.Equal(got, counted) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("n=%d, %q: %q, %v, want %q, %v", n, features, ids(got), err, ids(counted), wantErr)
				}
			}
		}
		if got := c.Stats(); got.Selections != want.Selections || got.Failovers != want.Failovers {
			t.Errorf("%d selections, %d failovers, want %d, %d", got.Selections, got.Failovers, want.Selections, want.Failovers)
		}
	}
	check(ringclient.Stats{Selections: 2 * ringclient.MaxOwners})
	owner, _ := c.State().AppendUncounted(nil, []byte("key"), nil, 1)
	eu, _ := c.State().AppendUncounted(nil, []byte("key"), []string{"eu"}, 1)
	failovers := uint64(ringclient.MaxOwners)
	if owner[0].ID() == eu[0].ID() {
		failovers *= 2
	}
	c.ReportFailed(owner[0].ID(), time.Minute)
	check(ringclient.Stats{Selections: 4 * ringclient.MaxOwners, Failovers: failovers})
}

func TestDecisionCarriesBackendAndRing(t *testing.T) {
	backends := func(ids ...string) ring.Config {
		c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V1, PointsPerWeight: 160}}
		for _, id := range ids {
			c.Backends = append(c.Backends, ring.Backend{ID: id, Weight: 2, Zone: "z1"})
		}
		return c
	}
	for name, tc := range map[string]struct {
		identity  ring.Identity
		id        string
		addresses map[string]string
		want      string
	}{
		"address":                    {ring.IdentityAddress, "[2001:db8::1]:80", nil, "[2001:db8::1]:80"},
		"NGINX server":               {ring.IdentityNGINX, "cache.example:8080", nil, "cache.example:8080"},
		"NGINX server with address":  {ring.IdentityNGINX, "cache.example", map[string]string{"cache.example": "10.0.0.9:80"}, "10.0.0.9:80"},
		"name":                       {ring.IdentityName, "cache-3", map[string]string{"cache-3": "10.0.0.7:1"}, "10.0.0.7:1"},
		"name without an address":    {ring.IdentityName, "cache-3", nil, ""},
		"name, address of no member": {ring.IdentityName, "cache-3", map[string]string{"cache-9": "10.0.0.7:1"}, ""},
		"server beside an addressed": {ring.IdentityNGINX, "one:1", map[string]string{"two": "10.0.0.7:1"}, "one:1"},
	} {
		t.Run(name, func(t *testing.T) {
			config := backends(tc.id)
			config.Identity = tc.identity
			p := published(41, build(t, config))
			p.addresses = tc.addresses
			dir := t.TempDir()
			mount(t, dir, p.files(t))
			c := open(t, dir, ringclient.Options{})
			d, err := c.Pick([]byte("key"))
			if err != nil {
				t.Fatal(err)
			}
			if got := c.State().Stable().Address(0); got != tc.want {
				t.Errorf("the loaded ring has it at %q", got)
			}
			if d.ID() != tc.id || d.Address() != tc.want || d.Zone() != "z1" || d.Weight() != 2 || d.Generation() != 41 ||
				d.Digest() != p.snapshot.Digest() || d.Role() != ringclient.Stable || d.Failover() {
				t.Errorf("%s at %q in %q, weight %d, generation %d, %s", d.ID(), d.Address(), d.Zone(), d.Weight(), d.Generation(), d.Digest())
			}
		})
	}
}

// TestViewsAreBounded asks for more sets of features than are kept, and compares those beyond with the ring too.
func TestViewsAreBounded(t *testing.T) {
	config := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 10}, Identity: ring.IdentityName}
	for f := range 9 {
		config.Features = append(config.Features, fmt.Sprintf("f%d", f))
	}
	for i := range 20 {
		b := ring.Backend{ID: fmt.Sprintf("n%02d", i), Weight: 1}
		for f, name := range config.Features {
			if i%(f+2) != 0 || i == 0 {
				b.Features = append(b.Features, name)
			}
		}
		config.Backends = append(config.Backends, b)
	}
	r := build(t, config)
	dir := t.TempDir()
	mount(t, dir, published(1, r).files(t))
	c := open(t, dir, ringclient.Options{})
	before := c.Stats().BytesHeld
	for set := range 1 << len(config.Features) {
		var features []string
		for f, name := range config.Features {
			if set>>f&1 != 0 {
				features = append(features, name)
			}
		}
		got, err := c.Lookup([]byte("key"), features, 2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(owners(t, r, "key", 2, features...), ids(got)); diff != "" {
			t.Fatalf("features %v (-want +got):\n%s", features, diff)
		}
	}
	if got := c.State().CachedViews(); got != ringclient.MaxCachedViews {
		t.Errorf("%d views are kept, want %d", got, ringclient.MaxCachedViews)
	}
	if after := c.Stats().BytesHeld; after <= before {
		t.Errorf("bytes held went from %d to %d with the views", before, after)
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	dir := t.TempDir()
	p := published(1, addressRing(t, 12))
	mount(t, dir, p.files(t))
	c := open(t, dir, ringclient.Options{})
	key := []byte("a key of some thirty-two bytes..")
	dst := make([]ringclient.Decision, 0, 8)
	features := []string{"eu", "ssd"}
	for name, lookup := range map[string]func() error{
		"owner":    func() (err error) { dst, err = c.AppendDecisions(dst[:0], key, nil, 1); return err },
		"several":  func() (err error) { dst, err = c.AppendDecisions(dst[:0], key, nil, 3); return err },
		"features": func() (err error) { dst, err = c.AppendDecisions(dst[:0], key, features, 1); return err },
		"both":     func() (err error) { dst, err = c.AppendDecisions(dst[:0], key, features, 2); return err },
	} {
		t.Run(name, func(t *testing.T) {
			allocs := testing.AllocsPerRun(100, func() {
				if err := lookup(); err != nil {
					t.Fatal(err)
				}
			})
			if allocs != 0 {
				t.Errorf("%v allocations a lookup", allocs)
			}
		})
	}
}

func TestLookupWithoutRing(t *testing.T) {
	c := open(t, t.TempDir(), ringclient.Options{WaitForRing: true})
	if _, err := c.Lookup([]byte("key"), nil, 1); !errors.Is(err, ringclient.ErrNotLoaded) {
		t.Errorf("error %v, want ErrNotLoaded", err)
	}
	if c.State() != nil {
		t.Error("there is a state")
	}
}

// TestLookupPassesOverBackendsThatAreDown to the next ones on the ring, unless all are down; and a backend that is not on the
// ring makes no difference.
func TestLookupPassesOverBackendsThatAreDown(t *testing.T) {
	r := addressRing(t, 12)
	for name, down := range map[string][]string{
		"none": nil, "one": {"10.0.0.12:8080"}, "three": {"10.0.0.10:8080", "10.0.0.11:8080", "10.0.0.12:8080"}, "a stranger": {"192.0.2.1:80"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := published(3, r)
			p.down = down
			mount(t, dir, p.files(t))
			c := open(t, dir, ringclient.Options{})
			for i := range 200 {
				key := fmt.Sprintf("key-%d", i)
				for _, n := range []int{1, 2} {
					got, err := c.Lookup([]byte(key), nil, n)
					if err != nil {
						t.Fatal(err)
					}
					var want []string
					for _, id := range owners(t, r, key, 12) {
						if len(want) < n && !slices.Contains(down, id) {
							want = append(want, id)
						}
					}
					if diff := cmp.Diff(want, ids(got)); diff != "" {
						t.Fatalf("%d owners of %s (-want +got):\n%s", n, key, diff)
					}
				}
			}
		})
	}
	t.Run("all", func(t *testing.T) {
		dir := t.TempDir()
		p := published(3, r)
		for i := range r.Len() {
			p.down = append(p.down, r.ID(i))
		}
		slices.Sort(p.down)
		mount(t, dir, p.files(t))
		c := open(t, dir, ringclient.Options{})
		got, err := c.Lookup([]byte("key"), nil, 2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(owners(t, r, "key", 2), ids(got)); diff != "" {
			t.Errorf("owners (-want +got):\n%s", diff)
		}
	})
}

// TestDownAllocatesNothing keeps the hot path free of garbage, down backends or not.
func TestDownAllocatesNothing(t *testing.T) {
	dir := t.TempDir()
	p := published(3, addressRing(t, 12))
	p.down = []string{"10.0.0.12:8080"}
	mount(t, dir, p.files(t))
	c := open(t, dir, ringclient.Options{})
	key, dst := []byte("key-0"), make([]ringclient.Decision, 0, 2)
	for _, n := range []int{1, 2} {
		if allocs := testing.AllocsPerRun(100, func() {
			key[4]++
			if _, err := c.AppendDecisions(dst, key, nil, n); err != nil {
				t.Fatal(err)
			}
		}); allocs != 0 {
			t.Errorf("a lookup of %d allocates %v times", n, allocs)
		}
	}
}
