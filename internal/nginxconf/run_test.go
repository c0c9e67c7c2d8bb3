// SPDX-License-Identifier: Apache-2.0

package nginxconf_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/internal/nginxconf"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

func randomAddress(rnd *rand.Rand) string {
	return fmt.Sprintf("10.%d.%d.%d:%d", rnd.IntN(256), rnd.IntN(256), rnd.IntN(256), 1+rnd.IntN(65535))
}

// script writes a shell script and returns its path.
func script(t *testing.T, dir, body string) string {
	t.Helper()
	path := filepath.Join(dir, "script.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func lines(path string) int {
	text, _ := os.ReadFile(path)
	return strings.Count(string(text), "\n")
}

func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// TestRunTellsOnChangesOnly: a new generation without other servers changes the comment, and is nothing to NGINX.
func TestRunTellsOnChangesOnly(t *testing.T) {
	work, dir := t.TempDir(), t.TempDir()
	told := filepath.Join(work, "told")
	config := nginxconf.Config{
		Output: filepath.Join(work, "ring.conf"), MinInterval: 300 * time.Millisecond,
		ReloadCommand: script(t, work, "date +%s.%N >>"+told+"\n"),
	}
	one, two := build(t, configOf(ring.IdentityNGINX, "a:1")), build(t, configOf(ring.IdentityNGINX, "a:1", "b:1"))
	publish(t, dir, 1, one, nil, 0)
	_, r := start(t, dir, config)
	eventually(t, "the first time", func() bool { return lines(told) == 1 })
	publish(t, dir, 2, one, nil, 0)
	eventually(t, "the comment of generation 2", func() bool { return strings.Contains(read(config.Output), "generation 2,") })
	publish(t, dir, 3, two, nil, 0)
	eventually(t, "the second ring", func() bool { return strings.Contains(read(config.Output), "server b:1 ") })
	eventually(t, "the second time", func() bool { return lines(told) == 2 })

	// Changes come faster than NGINX may be told, and it ends with the newest.
	for generation := int64(4); generation < 24; generation++ {
		rings := []*ring.Ring{one, two}
		publish(t, dir, generation, rings[generation%2], nil, 0)
		eventually(t, "the client", func() bool { return len(r.Warnings()) == 0 })
	}
	publish(t, dir, 24, build(t, configOf(ring.IdentityNGINX, "last:1")), nil, 0)
	eventually(t, "the last ring", func() bool { return strings.Contains(read(config.Output), "server last:1 ") })
	var before float64
	for i, text := range strings.Fields(read(told)) {
		var at float64
		if _, err := fmt.Sscan(text, &at); err != nil {
			t.Fatal(err)
		}
		if i > 0 && at-before < 0.25 { // The script takes a moment.
			t.Errorf("told again after %.3f s", at-before)
		}
		before = at
	}
}

// TestRunKeepsTheFile: what cannot be rendered, or does not pass the test, leaves the file as it was.
func TestRunKeepsTheFile(t *testing.T) {
	work, dir := t.TempDir(), t.TempDir()
	config := nginxconf.Config{Output: filepath.Join(work, "ring.conf")}
	config.MinInterval = nginxconf.MinInterval
	config.TestCommand = script(t, work, "if grep -q bad "+config.Output+"; then echo no such host; exit 1; fi\n")
	publish(t, dir, 1, build(t, configOf(ring.IdentityNGINX, "a:1")), nil, 0)
	_, r := start(t, dir, config)
	eventually(t, "the file", func() bool { return strings.Contains(read(config.Output), "server a:1 ") })
	want := read(config.Output)

	publish(t, dir, 2, build(t, configOf(ring.IdentityNGINX, "bad:1")), nil, 0)
	eventually(t, "a warning", func() bool { return contains(r.Warnings(), "no such host") })
	if got := r.NotApplied(); !strings.HasPrefix(got, "NGINX does not have the ring: ") || current(t, r) != 0 {
		t.Errorf("not applied: %q, current %v", got, current(t, r))
	}
	if got := read(config.Output); got != want {
		t.Errorf("the file is\n%s", got)
	}
	v2 := configOf(ring.IdentityNGINX, "a:1", "b:1")
	v2.Algorithm = ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}
	publish(t, dir, 3, build(t, v2), nil, 0)
	eventually(t, "a warning", func() bool { return contains(r.Warnings(), "the algorithm is V2") })
	if got := read(config.Output); got != want {
		t.Errorf("the file is\n%s", got)
	}
	publish(t, dir, 4, build(t, configOf(ring.IdentityNGINX, "c:1")), nil, 0)
	eventually(t, "the next ring", func() bool { return strings.Contains(read(config.Output), "server c:1 ") && len(r.Warnings()) == 0 })
	entries, err := os.ReadDir(work)
	if err != nil || len(entries) != 2 {
		t.Errorf("files are left: %v, %v", entries, err)
	}
}

// TestRunSignalsNGINXOnly: the process of a pid file that is out of date is somebody else.
func TestRunSignalsNGINXOnly(t *testing.T) {
	work, dir := t.TempDir(), t.TempDir()
	config := nginxconf.Config{Output: filepath.Join(work, "ring.conf"), PIDFile: filepath.Join(work, "pid")}
	publish(t, dir, 1, build(t, configOf(ring.IdentityNGINX, "a:1")), nil, 0)
	_, r := start(t, dir, config)
	eventually(t, "no file", func() bool { return contains(r.Warnings(), "no such file") })
	generation := int64(1)
	for text, want := range map[string]string{fmt.Sprint(os.Getpid()): "not NGINX", "": "not a process", "1": "not a process", "-5": "not a process"} {
		generation++
		publish(t, dir, generation, build(t, configOf(ring.IdentityNGINX, fmt.Sprint("a:", generation))), nil, 0) // A new ring is tried at once.
		if err := os.WriteFile(config.PIDFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		eventually(t, text, func() bool { return contains(r.Warnings(), want) })
	}
}

// TestRunSaysWhatNGINXCannotFollow: some keys are to go to the candidate, then all are forced there.
func TestRunSaysWhatNGINXCannotFollow(t *testing.T) {
	dir := t.TempDir()
	config := nginxconf.Config{Output: filepath.Join(t.TempDir(), "ring.conf"), MinInterval: nginxconf.MinInterval}
	publish(t, dir, 1, build(t, configOf(ring.IdentityNGINX, "a:1")), build(t, configOf(ring.IdentityNGINX, "b:1")), 50)
	client, r := start(t, dir, config)
	eventually(t, "the warning", func() bool { return contains(r.Warnings(), "50 of 10000 keys are to go to the candidate") })
	eventually(t, "the stable ring", func() bool { return strings.Contains(read(config.Output), "server a:1 ") })
	eventually(t, "the reason", func() bool {
		return strings.HasPrefix(r.NotApplied(), "NGINX does not follow the split: 50 of 10000 keys")
	})
	if err := client.SetForce(ringclient.ForceCandidate); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the candidate", func() bool { return strings.Contains(read(config.Output), "server b:1 ") && len(r.Warnings()) == 0 })
	eventually(t, "no reason", func() bool { return r.NotApplied() == "" })
}

// TestRunIsNotCurrentBeforeNGINXIsTold: until the least time between two reloads is over, NGINX has the ring before.
func TestRunIsNotCurrentBeforeNGINXIsTold(t *testing.T) {
	dir := t.TempDir()
	config := nginxconf.Config{Output: filepath.Join(t.TempDir(), "ring.conf"), MinInterval: time.Hour}
	client, r := start(t, dir, config)
	if got := r.NotApplied(); got != "" || current(t, r) != 0 {
		t.Errorf("without a ring: %q, current %v", got, current(t, r))
	}
	publish(t, dir, 1, build(t, configOf(ring.IdentityNGINX, "a:1")), nil, 0)
	eventually(t, "the first ring", func() bool { return client.State() != nil && r.NotApplied() == "" && current(t, r) == 1 })
	publish(t, dir, 2, build(t, configOf(ring.IdentityNGINX, "b:1")), nil, 0)
	eventually(t, "the second ring", func() bool { return client.State().Generation() == 2 })
	if got := r.NotApplied(); got != "NGINX was not told of the ring yet" || current(t, r) != 0 {
		t.Errorf("within the interval: %q, current %v", got, current(t, r))
	}
}

// TestRunNeedsNothingButTheState: what the client refuses is in the directory, and what it has loaded is forced to the other ring.
func TestRunNeedsNothingButTheState(t *testing.T) {
	dir := t.TempDir()
	config := nginxconf.Config{Output: filepath.Join(t.TempDir(), "ring.conf"), MinInterval: nginxconf.MinInterval}
	a, b := build(t, configOf(ring.IdentityNGINX, "a:1")), build(t, configOf(ring.IdentityNGINX, "b:1"))
	publish(t, dir, 5, a, b, 0)
	client, r := start(t, dir, config)
	eventually(t, "the stable ring", func() bool { return strings.Contains(read(config.Output), "server a:1 ") })
	publish(t, dir, 4, a, nil, 0)
	eventually(t, "the refusal", func() bool {
		last := client.Stats().LastError
		return last != nil && last.Reason == ringclient.ReasonRegression
	})
	if err := client.SetForce(ringclient.ForceCandidate); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the candidate", func() bool { return strings.Contains(read(config.Output), "server b:1 ") && r.NotApplied() == "" })
}

// current returns the metric that says whether NGINX has the ring that is loaded.
func current(t *testing.T, r *nginxconf.Renderer) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "ringwright_agent_nginx_current" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}
