// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// withoutTimes checks that the named fields are times and removes them.
func withoutTimes(t *testing.T, object map[string]any, fields ...string) map[string]any {
	t.Helper()
	for _, field := range fields {
		text, _ := object[field].(string)
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil || !strings.HasSuffix(text, "Z") {
			t.Errorf("%s is %v, not a time in UTC", field, object[field])
		}
		delete(object, field)
	}
	return object
}

func TestStatusOfRing(t *testing.T) {
	dir := t.TempDir()
	r := names(t, "one", "two")
	publish(t, dir, 41, r)
	client, base := serveDir(t, dir)
	for range 3 {
		get(t, base+"/v1/lookup?key=a")
	}
	got := withoutTimes(t, get(t, base+"/v1/status").object(t), "loadedAt", "startedAt")
	counters := got["counters"].(map[string]any)
	if seconds := counters["loadSeconds"].(float64); seconds <= 0 || seconds > 60 {
		t.Errorf("loading took %v seconds", seconds)
	}
	delete(counters, "loadSeconds")
	want := map[string]any{
		"ready": true, "ring": "cdn/edge", "generation": 41.0, "basisPoints": 0.0,
		"stable": map[string]any{
			"digest": r.Digest(), "version": "V2", "revision": 7.0, "encoding": "Points", "backends": 2.0, "down": 0.0,
			"points": float64(r.PointCount()),
		},
		"counters": map[string]any{
			"loads": 1.0, "loadErrors": map[string]any{}, "selections": 3.0, "failovers": 0.0, "errors": 0.0, "bytesHeld": float64(client.Stats().BytesHeld),
			"rings": []any{map[string]any{"role": "stable", "revision": 7.0, "digest": r.Digest(), "selections": 3.0, "failovers": 0.0, "errors": 0.0}},
		},
		"build": map[string]any{"version": "v1.2.3", "go": runtime.Version()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProbesAndStatusThroughFailures starts without a ring, gets one, and then a file that cannot be used.
func TestProbesAndStatusThroughFailures(t *testing.T) {
	dir := t.TempDir()
	client, base := serveDir(t, dir)
	missing := filepath.Join(dir, "routing.json")
	checkProbe(t, base+"/healthz", http.StatusOK, "ok")
	checkProbe(t, base+"/readyz", http.StatusServiceUnavailable, missing)
	checkProbe(t, base+"/v1/lookup?key=a", http.StatusServiceUnavailable, "no ring is loaded yet")
	status := get(t, base+"/v1/status").object(t)
	if _, hasRing := status["ring"]; status["ready"] != false || hasRing {
		t.Errorf("status without a ring: %v", status)
	}

	publish(t, dir, 2, names(t, "one"))
	if err := client.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkProbe(t, base+"/readyz", http.StatusOK, "ready")

	publish(t, dir, 1, names(t, "two"))
	eventually(t, "the failure", func() bool { return client.Stats().LoadErrors[ringclient.ReasonRegression] > 0 })
	checkProbe(t, base+"/readyz", http.StatusOK, "ready")
	checkProbe(t, base+"/v1/lookup?key=a", http.StatusOK, `"id":"one"`)
	got := withoutTimes(t, get(t, base+"/v1/status").object(t)["lastError"].(map[string]any), "time")
	want := map[string]any{
		"reason": "regression", "message": missing + ": its generation is 1, the loaded one is 2",
		"file": missing, "value": "1", "limit": "2", "current": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("last error (-want +got):\n%s", diff)
	}
}

// TestStatusOfMigration has a candidate and a backend that is down.
func TestStatusOfMigration(t *testing.T) {
	dir := t.TempDir()
	stable, candidate := names(t, "one", "two"), names(t, "one", "two", "three")
	publishFile(t, dir, routing.File{
		Generation: 3, LeaderEpoch: 12, UID: "u-1", Down: []string{"three"},
		Split: &routing.Split{Seed: 1, BasisPoints: map[string]int{"*": 5, "lab01": 50}},
	}, stable, candidate)
	_, base := serveDir(t, dir)
	got := withoutTimes(t, get(t, base+"/v1/status").object(t), "loadedAt", "startedAt")
	counters := got["counters"].(map[string]any)
	delete(got, "counters")
	delete(got, "build")
	want := map[string]any{
		"ready": true, "ring": "cdn/edge", "uid": "u-1", "generation": 3.0, "leaderEpoch": 12.0, "basisPoints": 50.0,
		"stable": map[string]any{
			"digest": stable.Digest(), "version": "V2", "revision": 7.0, "encoding": "Points", "backends": 2.0, "down": 0.0,
			"points": float64(stable.PointCount()),
		},
		"candidate": map[string]any{
			"digest": candidate.Digest(), "version": "V2", "revision": 8.0, "encoding": "Points", "backends": 3.0, "down": 1.0,
			"points": float64(candidate.PointCount()),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if rings := counters["rings"].([]any); len(rings) != 2 || rings[1].(map[string]any)["role"] != "candidate" {
		t.Errorf("counters of %v", rings)
	}
}

func checkProbe(t *testing.T, url string, status int, part string) {
	t.Helper()
	if got := get(t, url); got.status != status || !strings.Contains(got.body, part) {
		t.Errorf("%s: %d %s, want %d and %q", url, got.status, got.body, status, part)
	}
}

// TestStatusWarnsWithoutEvents has a directory that does not exist and so cannot be watched.
func TestStatusWarnsWithoutEvents(t *testing.T) {
	_, base := serveDir(t, filepath.Join(t.TempDir(), "none"))
	warnings, _ := get(t, base+"/v1/status").object(t)["warnings"].([]any)
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0].(string), "no file events") {
		t.Errorf("warnings: %v", warnings)
	}
}

func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	r := names(t, "one", "two")
	client, base := serveDir(t, dir)
	if cold := get(t, base+"/metrics").body; strings.Contains(cold, "ringwright_client_ring_info") {
		t.Error("there is a ring before one is loaded")
	}
	publish(t, dir, 41, r)
	if err := client.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	get(t, base+"/v1/lookup?key=a")
	get(t, base+"/v1/lookup")
	get(t, base+"/any/path")
	request(t, "BREW", base+"/any/path")
	got := get(t, base+"/metrics").body
	for _, line := range []string{
		"ringwright_client_loads_total 1\n",
		`ringwright_client_load_errors_total{reason="digest"} 0` + "\n",
		"ringwright_client_load_duration_seconds_count 1\n",
		"ringwright_client_load_duration_seconds_sum ",
		`ringwright_agent_http_request_duration_seconds_count{code="404",method="other",path="other"} 1` + "\n",
		"ringwright_agent_draining 0\n",
		`ringwright_client_selections_total{revision="7",role="stable"} 1` + "\n",
		"ringwright_client_failing 0\n",
		"ringwright_client_bytes_held ",
		`ringwright_client_generation{ring="cdn/edge"} 41` + "\n",
		fmt.Sprintf(`ringwright_client_ring_info{digest=%q,revision="7",ring="cdn/edge",role="stable",version="V2"} 1`+"\n", r.Digest()),
		`ringwright_client_backends{ring="cdn/edge",role="stable"} 2` + "\n",
		fmt.Sprintf(`ringwright_client_points{ring="cdn/edge",role="stable"} %d`+"\n", r.PointCount()),
		`ringwright_client_loaded_timestamp_seconds{ring="cdn/edge"} `,
		`ringwright_agent_http_request_duration_seconds_count{code="200",method="get",path="/v1/lookup"} 1` + "\n",
		`ringwright_agent_http_request_duration_seconds_count{code="400",method="get",path="/v1/lookup"} 1` + "\n",
		`ringwright_agent_http_request_duration_seconds_count{code="404",method="get",path="other"} 1` + "\n",
		"go_goroutines ",
		"process_start_time_seconds ",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in the metrics", line)
		}
	}
	for _, reason := range ringclient.Reasons() {
		if !strings.Contains(got, fmt.Sprintf("ringwright_client_load_errors_total{reason=%q} ", reason)) {
			t.Errorf("reason %s is not in the metrics", reason)
		}
	}
}

// TestSeriesOfAnIdleAgent: what nobody has asked for has no series.
func TestSeriesOfAnIdleAgent(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir, StatusListen: "127.0.0.1:0"})
	get(t, r.url("status")+"/metrics")
	n := 0
	for line := range strings.Lines(get(t, r.url("status")+"/metrics").body) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	if n < 60 || n > 120 {
		t.Errorf("%d series", n)
	}
	r.end(t)
}

func TestMetricsFollowConventions(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	client, _ := serveDir(t, dir)
	families, err := agent.NewRegistry(client).Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
