// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// announced returns who shall answer each key by the command line: the owner in the ring of a directory, or the next one where that is dead.
func (t *traffic) announced(ctx context.Context, dir, dead string) (map[string]string, error) {
	args := append([]string{"lookup", "--dir", dir, "--owners", "2", "-o", "tsv"}, t.keys...)
	out, err := t.run(ctx, args...)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, b := range t.backends {
		names[b.address] = b.name
	}
	want := map[string]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		for _, field := range fields[1:] {
			if name, known := names[field]; known && name != dead {
				want[fields[0]] = name
				break
			}
		}
	}
	if len(want) != len(t.keys) {
		return nil, fmt.Errorf("kubectl hashring lookup answers %d of %d keys", len(want), len(t.keys))
	}
	return want, nil
}

// run runs the kubectl plugin.
func (d *demo) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, d.path("bin", "kubectl-hashring"), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("kubectl-hashring %s: %w", args[0], err)
	}
	return out, nil
}

// expect waits until both agents send each key where the ring of a directory says, with one backend dead or none.
func (t *traffic) expect(ctx context.Context, dir, dead string) error {
	want, err := t.announced(ctx, dir, dead)
	if err != nil {
		return err
	}
	return waitFor(ctx, "both agents to send each key where it belongs", func(ctx context.Context) error {
		for _, agent := range t.agents {
			got, err := t.owners(ctx, agent)
			if err != nil {
				return &finalError{err} // A request failed.
			}
			for _, key := range t.keys {
				if got[key] != want[key] {
					return fmt.Errorf("key %s goes to %s, not to %s", key, got[key], want[key])
				}
			}
		}
		return nil
	})
}

// killBackend closes a backend that owns a key, and starts it again.
func (t *traffic) killBackend(ctx context.Context) error {
	dir := t.path("traffic-east")
	victim := t.backends[3]
	say("Killing " + victim.name + " under traffic")
	if err := victim.die(); err != nil {
		return err
	}
	if err := t.expect(ctx, dir, victim.name); err != nil {
		return err
	}
	before, err := t.announced(ctx, dir, "")
	if err != nil {
		return err
	}
	after, err := t.announced(ctx, dir, victim.name)
	if err != nil {
		return err
	}
	fmt.Printf("  its %d keys are answered by the next on the ring, and no other key moves\n", len(moved(before, after)))
	if err := victim.start(); err != nil {
		return err
	}
	if err := t.expect(ctx, dir, ""); err != nil {
		return err
	}
	fmt.Println("  it is back, and so are its keys")
	return nil
}

// moved returns the keys whose owners differ.
func moved(before, after map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(before)), func(key string) bool { return before[key] == after[key] })
}

// planned is what the demo reads of the report of kubectl hashring plan.
type planned struct {
	Moved float64 `json:"moved"`
	Pairs []struct{ From, To string }
}

// changeWeight doubles the weight of a backend, and compares the keys that move with what was announced before.
func (t *traffic) changeWeight(ctx context.Context) error {
	east, heavy := t.path("traffic-east"), t.backends[5].name
	say("Doubling the weight of " + heavy + " under traffic")
	text, err := t.manifest(heavy)
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.path("heavy.yaml"), text, 0o600); err != nil {
		return err
	}
	report, err := t.plan(ctx, t.path("heavy.yaml"), east)
	if err != nil {
		return err
	}
	if _, err := t.run(ctx, "build", "-f", t.path("heavy.yaml"), "-o", t.path("next")); err != nil {
		return err
	}
	before, err := t.announced(ctx, east, "")
	if err != nil {
		return err
	}
	after, err := t.announced(ctx, t.path("next"), "")
	if err != nil {
		return err
	}
	keys := moved(before, after)
	for _, key := range keys {
		if !slices.ContainsFunc(report.Pairs, func(p struct{ From, To string }) bool { return p.From == before[key] && p.To == after[key] }) {
			return fmt.Errorf("key %s moves from %s to %s, which plan does not announce", key, before[key], after[key])
		}
	}
	// These keys are a sample of the key space, so their part lies around the announced one: five standard deviations are never seen.
	n, share := float64(len(t.keys)), report.Moved
	if deviation := math.Abs(float64(len(keys)) - n*share); deviation > 5*math.Sqrt(n*share*(1-share)) {
		return fmt.Errorf("%d of %d keys move, and plan announces %.2f%%", len(keys), len(t.keys), 100*share)
	}
	fmt.Printf("  kubectl hashring plan announces %.2f%% of the key space, which is %d of these %d keys\n", 100*report.Moved, len(keys), len(t.keys))
	if err := t.apply(ctx, "heavy.yaml", heavy); err != nil {
		return err
	}
	if err := t.expect(ctx, t.path("next"), ""); err != nil {
		return err
	}
	fmt.Println("  both agents have moved exactly those")
	return nil
}

// plan returns what moves when a manifest is applied.
func (t *traffic) plan(ctx context.Context, file, from string) (planned, error) {
	var report planned
	out, err := t.run(ctx, "plan", "-f", file, "--from", from, "-o", "json", "--pairs", strconv.Itoa(trafficBackends*trafficBackends))
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1 says that keys move.
		return report, err
	}
	return report, json.Unmarshal(out, &report)
}
