// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/internal/agentapi"
	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/pkg/routing"
)

// series returns the value of the one series that an agent shows with this name and these labels, in any order, and false where
// there is none.
func (r *running) series(t *testing.T, name string, labels ...string) (float64, bool) {
	t.Helper()
lines:
	for line := range strings.Lines(get(t, r.metrics()+"/metrics").body) {
		rest, isIt := strings.CutPrefix(line, name)
		if !isIt || !strings.ContainsAny(rest[:1], "{ ") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(rest, label) {
				continue lines
			}
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return value, true
	}
	return 0, false
}

func (r *running) wantSeries(t *testing.T, want float64, name string, labels ...string) {
	t.Helper()
	if got, found := r.series(t, name, labels...); !found || got != want {
		t.Errorf("%s of %q: %v, %v; want %v", name, labels, got, found, want)
	}
}

// TestSignalsOfMigration: an agent shows by datacenter and ring what a migration is watched by, of the candidate as soon as that is
// loaded.
func TestSignalsOfMigration(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(gone.URL, "http://")
	gone.Close()
	dir := t.TempDir()
	stable, candidate := names(t, "one"), names(t, "two")
	addresses := map[string]string{"one": address, "two": address}
	config := proxy.DefaultConfig()
	config.CacheStatusHeader, config.Attempts = "X-Cache", 1
	r := start(t, agent.Config{Dir: dir, Datacenter: "lab01", StatusListen: "127.0.0.1:0", ProxyListen: "127.0.0.1:0", Proxy: config})
	if _, found := r.series(t, "ringwright_agent_startup_seconds"); found {
		t.Error("it has started up without a ring")
	}
	publishFile(t, dir, routing.File{Generation: 1, Addresses: addresses}, stable, nil)
	eventually(t, "the start", func() bool { _, found := r.series(t, "ringwright_agent_startup_seconds"); return found })
	if took, _ := r.series(t, "ringwright_agent_startup_seconds"); took <= 0 || took > 60 {
		t.Errorf("it started up in %v s", took)
	}
	here, ofStable, ofCandidate := `datacenter="lab01"`, `role="stable"`, `role="candidate"`
	askAll(t, r)

	publishFile(t, dir, routing.File{Generation: 2, Addresses: addresses, Split: &routing.Split{
		Seed: 1, BasisPoints: map[string]int{"*": 0, "lab01": routing.MaxBasisPoints},
	}}, stable, candidate)
	eventually(t, "the candidate", func() bool {
		n, _ := r.series(t, "ringwright_client_generation", here)
		return n == 2
	})
	for _, name := range []string{
		"ringwright_client_selections_total", "ringwright_client_failovers_total", "ringwright_client_errors_total", "ringwright_agent_owner_checks_total",
		"ringwright_agent_owner_changes_total",
	} {
		r.wantSeries(t, 0, name, here, ofCandidate)
	}
	for name, label := range map[string]string{
		"requests_total": `class="5xx"`, "backend_errors_total": `reason="refused"`, "failovers_total": `reason="refused"`, "cache_responses_total": `status="HIT"`,
	} {
		r.wantSeries(t, 0, "ringwright_proxy_"+name, here, ofCandidate, label)
	}
	askAll(t, r)
	get(t, r.url("proxy")+"/any")
	r.wantSeries(t, 1600, "ringwright_client_selections_total", here, ofStable, `revision="7"`)
	r.wantSeries(t, 1601, "ringwright_client_selections_total", here, ofCandidate, `revision="8"`)
	r.wantSeries(t, 1, "ringwright_client_errors_total", here, ofCandidate)
	r.wantSeries(t, 1, "ringwright_proxy_backend_errors_total", here, ofCandidate, `reason="refused"`)
	r.wantSeries(t, 1, "ringwright_proxy_requests_total", here, ofCandidate, `class="5xx"`)
	r.wantSeries(t, routing.MaxBasisPoints, "ringwright_client_effective_basis_points", here)
	changes, _ := r.series(t, "ringwright_agent_owner_changes_total", here, ofCandidate)
	checks, _ := r.series(t, "ringwright_agent_owner_checks_total", here, ofCandidate)
	if changes < 75 || changes != checks { // Of 1,600 keys about 100 are watched, and all of them move.
		t.Errorf("%v changes of owners, %v checks", changes, checks)
	}
	r.wantErrors(t)
	r.end(t)
}

// askAll asks for 1,600 keys, one by one and in a batch, which is half of them each.
func askAll(t *testing.T, r *running) {
	t.Helper()
	var batch []string
	for i := range 800 {
		get(t, fmt.Sprintf("%s/v1/lookup?key=single/%d", r.url("local"), i))
		batch = append(batch, fmt.Sprintf("batch/%d", i))
	}
	body, err := json.Marshal(map[string]any{"keys": batch})
	if err != nil {
		t.Fatal(err)
	}
	if got := send(t, http.MethodPost, r.url("local")+"/v1/lookup", string(body), nil); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
}

// wantErrors checks that the status has the one error, of the candidate.
func (r *running) wantErrors(t *testing.T) {
	t.Helper()
	var status agentapi.Status
	if err := json.NewDecoder(bytes.NewBufferString(get(t, r.url("status")+"/v1/status").body)).Decode(&status); err != nil {
		t.Fatal(err)
	}
	rings := status.Counters.Rings
	if len(rings) != 2 || rings[0].Errors != 0 || rings[1].Role != "candidate" || rings[1].Errors != 1 || status.Counters.Errors != 1 {
		t.Errorf("the status has %+v", status.Counters)
	}
	if since := time.Since(status.StartedAt); since <= 0 || since > time.Minute {
		t.Errorf("it started at %v", status.StartedAt)
	}
}

// TestDatacenterLabel: without a datacenter there is no such label, and one that cannot be a label is refused.
func TestDatacenterLabel(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir, StatusListen: "127.0.0.1:0"})
	if body := get(t, r.url("status")+"/metrics").body; regexp.MustCompile(`datacenter=`).MatchString(body) {
		t.Error("there is a label for a datacenter that nobody knows")
	}
	r.end(t)
	if err := agent.CheckArgs([]string{"--dir=x", "--datacenter=lab\xff"}); err == nil || !strings.Contains(err.Error(), `--datacenter is "lab\xff", which is not UTF-8`) {
		t.Errorf("bytes that are no text: %v", err)
	}
}

// metrics returns where the metrics are.
func (r *running) metrics() string {
	if _, found := r.addresses["status"]; found {
		return r.url("status")
	}
	return r.url("local")
}
