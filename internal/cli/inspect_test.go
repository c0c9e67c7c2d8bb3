// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

func TestInspectOutput(t *testing.T) {
	workdir(t, map[string]string{"fixed.yaml": `apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: fixed}
spec:
  backends: [{name: a, address: 10.0.87.193, port: 3254}, {name: b, address: 10.0.0.1, port: 80}]
`})
	succeed(t, "", "build", "-f", "fixed.yaml", "-o", "fixed")
	for name, args := range map[string][]string{
		"inspect-table":    {"--dir", "edge"},
		"inspect-features": {"--dir", "edge", "--features", "eu"},
		"inspect-names":    {"--dir", "shards"},
		"inspect-snapshot": {"--snapshot", "shards/ring-a.snap"},
		"inspect-warnings": {"--dir", "fixed"},
		"inspect-json":     {"--dir", "edge", "--features", "eu,ssd", "-o", "json"},
		"inspect-yaml":     {"--dir", "fixed", "-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			assertGolden(t, name, succeed(t, "", append([]string{"inspect"}, args...)...))
		})
	}
}

func TestInspectSharesAddUp(t *testing.T) {
	workdir(t, nil)
	for name, features := range map[string]string{"whole": "", "one feature": "eu", "two features": "eu,ssd"} {
		t.Run(name, func(t *testing.T) {
			args := []string{"inspect", "--dir", "edge", "-o", "json"}
			if features != "" {
				args = append(args, "--features", features)
			}
			var report InspectReport
			if err := json.Unmarshal([]byte(succeed(t, "", args...)), &report); err != nil {
				t.Fatal(err)
			}
			share, target, points := 0.0, 0.0, 0
			for _, b := range report.Backends {
				share, target, points = share+b.Share, target+b.Target, points+b.Points
			}
			if math.Abs(share-1) > 1e-8 || math.Abs(target-1) > 1e-8 {
				t.Errorf("shares add up to %v, targets to %v", share, target)
			}
			want := report.Snapshot.Points
			if report.View != nil {
				want = report.View.Points
			}
			if points != want {
				t.Errorf("%d points, want %d", points, want)
			}
		})
	}
}

// TestInspectOfARingThatOwnsNothing: it is never published, but it can be a file.
func TestInspectOfARingThatOwnsNothing(t *testing.T) {
	r, err := ring.Build(ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 16}, Identity: ring.IdentityName, Backends: []ring.Backend{{ID: "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write(t, "drained.snap", string(r.Snapshot()))
	assertGolden(t, "inspect-drained", succeed(t, "", "inspect", "--snapshot", "drained.snap"))
	wantContains(t, fail(t, ExitFailure, "lookup", "--snapshot", "drained.snap", "a"), "none of the 1 backends has a weight above 0")
}

func TestInspectRefuses(t *testing.T) {
	workdir(t, nil)
	wantContains(t, fail(t, ExitUsage, "inspect"), "no ring given")
	wantContains(t, fail(t, ExitUsage, "inspect", "--dir", "edge", "x"), `unexpected argument "x"`)
	wantContains(t, fail(t, ExitUsage, "inspect", "--dir", "edge", "-o", "tsv"), "must be table, json or yaml")
	wantContains(t, fail(t, ExitFailure, "inspect", "--dir", "edge", "--features", "x"), `unknown feature "x"`)
	damage(t, "edge/ring-a.snap")
	wantContains(t, fail(t, ExitFailure, "inspect", "--dir", "edge"), "edge/ring-a.snap has the digest")
	wantContains(t, fail(t, ExitFailure, "inspect", "--snapshot", "edge/ring-a.snap"), "edge/ring-a.snap: snapshot: checksum at byte")
}
