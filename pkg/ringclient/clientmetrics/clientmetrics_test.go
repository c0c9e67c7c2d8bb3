// SPDX-License-Identifier: Apache-2.0

package clientmetrics_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/ringclient/clientmetrics"
	"github.com/ringwright/ringwright/pkg/routing"
)

// ringOf builds a ring of n backends of 40 points.
func ringOf(t *testing.T, version ring.Version, n int) *ring.Ring {
	t.Helper()
	c := ring.Config{Algorithm: ring.Algorithm{Version: version, PointsPerWeight: 160}, Identity: ring.IdentityAddress}
	for i := range n {
		c.Backends = append(c.Backends, ring.Backend{ID: string(rune('1'+i)) + ".0.0.1:80", Weight: 1})
	}
	r, err := ring.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCollector compares all that is exported of a client in the middle of a migration.
func TestCollector(t *testing.T) {
	stable, candidate := ringOf(t, ring.V1, 2), ringOf(t, ring.V2, 3)
	file := routing.File{
		APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: 41, LeaderEpoch: 12,
		Stable:    routing.Reference{Slot: routing.SlotA, Digest: stable.Digest(), Version: "V1", Revision: 7},
		Candidate: &routing.Reference{Slot: routing.SlotB, Digest: candidate.Digest(), Version: "V2", Revision: 8},
		Split:     &routing.Split{BasisPoints: map[string]int{"lab": 10_000}}, Down: []string{"3.0.0.1:80"},
	}
	text, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := materialize.Write(dir, map[string][]byte{
		"routing.json": text, "ring-a.snap": stable.Snapshot(), "ring-b.snap": candidate.Snapshot(),
	}); err != nil {
		t.Fatal(err)
	}
	c, err := ringclient.Open(dir, ringclient.Options{Datacenter: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	pick := func() ringclient.Decision {
		d, err := c.Pick([]byte("key"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	pick().CountError()
	if err := c.SetForce(ringclient.ForceStable); err != nil {
		t.Fatal(err)
	}
	pick()
	pick()
	want := `
# HELP ringwright_client_backends Backends of the rings that are in use, drained ones included.
# TYPE ringwright_client_backends gauge
ringwright_client_backends{ring="cdn/edge",role="candidate"} 3
ringwright_client_backends{ring="cdn/edge",role="stable"} 2
# HELP ringwright_client_candidate_basis_points How many of 10,000 buckets of keys the candidate answers here.
# TYPE ringwright_client_candidate_basis_points gauge
ringwright_client_candidate_basis_points{ring="cdn/edge"} 10000
# HELP ringwright_client_down_backends Of those, the backends that are passed over because the routing file says so.
# TYPE ringwright_client_down_backends gauge
ringwright_client_down_backends{ring="cdn/edge",role="candidate"} 1
ringwright_client_down_backends{ring="cdn/edge",role="stable"} 0
# HELP ringwright_client_effective_basis_points The same, after what is forced: what lookups go by.
# TYPE ringwright_client_effective_basis_points gauge
ringwright_client_effective_basis_points{ring="cdn/edge"} 0
# HELP ringwright_client_errors_total Backends that the ring gave and that were tried in vain, as far as the program said so.
# TYPE ringwright_client_errors_total counter
ringwright_client_errors_total{revision="7",role="stable"} 0
ringwright_client_errors_total{revision="8",role="candidate"} 1
# HELP ringwright_client_forced 1 while the split is overridden in favour of that ring, else 0.
# TYPE ringwright_client_forced gauge
ringwright_client_forced{role="candidate"} 0
ringwright_client_forced{role="stable"} 1
# HELP ringwright_client_generation Generation of the routing file that is in use.
# TYPE ringwright_client_generation gauge
ringwright_client_generation{ring="cdn/edge"} 41
# HELP ringwright_client_leader_epoch Leader epoch of the routing file that is in use.
# TYPE ringwright_client_leader_epoch gauge
ringwright_client_leader_epoch{ring="cdn/edge"} 12
# HELP ringwright_client_points Points of the rings that are in use.
# TYPE ringwright_client_points gauge
ringwright_client_points{ring="cdn/edge",role="candidate"} 480
ringwright_client_points{ring="cdn/edge",role="stable"} 320
# HELP ringwright_client_selections_total Lookups that were answered, by the ring that answered. Series of rings that were replaced long ago go.
# TYPE ringwright_client_selections_total counter
ringwright_client_selections_total{revision="7",role="stable"} 2
ringwright_client_selections_total{revision="8",role="candidate"} 1
`
	if err := testutil.CollectAndCompare(clientmetrics.NewCollector(c), strings.NewReader(want),
		"ringwright_client_backends", "ringwright_client_candidate_basis_points", "ringwright_client_down_backends",
		"ringwright_client_effective_basis_points", "ringwright_client_errors_total", "ringwright_client_forced", "ringwright_client_generation", "ringwright_client_leader_epoch", "ringwright_client_points",
		"ringwright_client_selections_total",
	); err != nil {
		t.Error(err)
	}
	state := c.State()
	candidateRing, _ := state.Candidate()
	bytes := fmt.Sprintf(`# HELP ringwright_client_ring_bytes About how many bytes the rings take that are in use, mapped ones included.
# TYPE ringwright_client_ring_bytes gauge
ringwright_client_ring_bytes{ring="cdn/edge",role="candidate"} %d
ringwright_client_ring_bytes{ring="cdn/edge",role="stable"} %d
`, candidateRing.BytesHeld(), state.Stable().BytesHeld())
	if err := testutil.CollectAndCompare(clientmetrics.NewCollector(c), strings.NewReader(bytes), "ringwright_client_ring_bytes"); err != nil {
		t.Error(err)
	}
	if sum := candidateRing.BytesHeld() + state.Stable().BytesHeld(); sum != state.BytesHeld() || candidateRing.BytesHeld() <= state.Stable().BytesHeld() {
		t.Errorf("%d and %d bytes, %d in all", state.Stable().BytesHeld(), candidateRing.BytesHeld(), state.BytesHeld())
	}
	if problems, err := testutil.CollectAndLint(clientmetrics.NewCollector(c)); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

// TestUnknownRevisions makes one series of rings that have no number: without a cluster nobody counts them.
func TestUnknownRevisions(t *testing.T) {
	dir := t.TempDir()
	write := func(generation int64, r *ring.Ring) {
		text, err := routing.File{
			APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: generation,
			Stable: routing.Reference{Slot: routing.SlotA, Digest: r.Digest(), Version: "V2"},
		}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := materialize.Write(dir, map[string][]byte{"routing.json": text, "ring-a.snap": r.Snapshot()}); err != nil {
			t.Fatal(err)
		}
	}
	write(1, ringOf(t, ring.V2, 2))
	registry := prometheus.NewPedanticRegistry()
	for range 2 { // The second client is of the second ring, and each has a registry of its own in a program.
		c, err := ringclient.Open(dir, ringclient.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		registry = prometheus.NewPedanticRegistry()
		registry.MustRegister(clientmetrics.NewCollector(c))
		first := c.State().Generation()
		write(first+1, ringOf(t, ring.V2, 3))
		for c.State().Generation() == first {
			if _, err := c.Pick([]byte("key")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

func TestColdClient(t *testing.T) {
	c, err := ringclient.Open(t.TempDir(), ringclient.Options{WaitForRing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if n := testutil.CollectAndCount(clientmetrics.NewCollector(c), "ringwright_client_load_errors_total"); n != len(ringclient.Reasons()) {
		t.Errorf("%d reasons are exported, there are %d", n, len(ringclient.Reasons()))
	}
	if n := testutil.CollectAndCount(clientmetrics.NewCollector(c), "ringwright_client_ring_info"); n != 0 {
		t.Errorf("%d rings are exported", n)
	}
}
