// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

const trimmedManifest = `apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: trimmed, namespace: cdn}
spec:
  algorithm: {version: V3, pointsPerWeight: 40, weightUnit: 500, maxImbalance: "0.5%"}
  features: [{name: eu, selector: {matchLabels: {eu: "true"}}}]
  backends:
  - {name: c1, address: 10.0.0.1, port: 8080, weight: 500, labels: {eu: "true"}}
  - {name: c2, address: 10.0.0.2, port: 8080, weight: 750, labels: {eu: "true"}}
  - {name: c3, address: 10.0.0.3, port: 8080, weight: 1000}
  - {name: c4, address: 10.0.0.4, port: 8080, weight: 50, labels: {eu: "true"}}
`

func TestOutputOfATrimmedRing(t *testing.T) {
	workdir(t, map[string]string{"trimmed.yaml": trimmedManifest})
	assertGolden(t, "build-trimmed", succeed(t, "", "build", "-f", "trimmed.yaml", "-o", "trimmed"))
	assertGolden(t, "inspect-trimmed", succeed(t, "", "inspect", "--dir", "trimmed", "--features", "eu"))
	assertGolden(t, "inspect-trimmed-json", succeed(t, "", "inspect", "--dir", "trimmed", "-o", "json"))
}

// TestBuildAgainTrims: the ring of the directory is the one before, as that which is published is for the operator.
func TestBuildAgainTrims(t *testing.T) {
	workdir(t, map[string]string{"trimmed.yaml": trimmedManifest})
	succeed(t, "", "build", "-f", "trimmed.yaml", "-o", "trimmed")
	replace(t, "trimmed.yaml", "{name: c1, address: 10.0.0.1, port: 8080, weight: 500", "{name: c1, address: 10.0.0.1, port: 8080, weight: 600")
	before, err := ring.Open([]byte(read(t, "trimmed/ring-a.snap")))
	if err != nil {
		t.Fatal(err)
	}
	if report := buildOf(t, "-f", "trimmed.yaml", "-o", "trimmed"); report.Outcome != BuildUpdated {
		t.Errorf("outcome %s", report.Outcome)
	}
	got := read(t, "trimmed/ring-a.snap")
	opened, err := ring.Open([]byte(got))
	if err != nil {
		t.Fatal(err)
	}
	config := opened.Config()
	config.Previous = before
	want, err := ring.Build(config)
	if err != nil || !bytes.Equal(want.Snapshot(), []byte(got)) {
		t.Errorf("the ring is not the one that follows from the one before: %v", err)
	}
	succeed(t, "", "build", "-f", "trimmed.yaml", "-o", "fresh")
	if read(t, "fresh/ring-a.snap") == got {
		t.Error("what was before makes no difference: the test shows nothing")
	}
	if report := buildOf(t, "-f", "trimmed.yaml", "-o", "trimmed"); report.Outcome != BuildUnchanged {
		t.Errorf("built again: outcome %s", report.Outcome)
	}

	// What was published before is not known to whoever verifies, and need not be.
	if report, code := verifyOf(t, "--dir", "trimmed", "-f", "trimmed.yaml"); !report.OK || code != ExitOK {
		t.Errorf("verify: %q", notOK(report))
	}
	replace(t, "trimmed.yaml", "weight: 1000", "weight: 1001")
	if report, _ := verifyOf(t, "--dir", "trimmed", "-f", "trimmed.yaml"); report.OK {
		t.Error("another weight gives the published ring")
	}
	replace(t, "trimmed.yaml", "weight: 1001", "weight: 1000")

	remove(t, "trimmed/ring-a.snap")
	if report := buildOf(t, "-f", "trimmed.yaml", "-o", "trimmed"); report.Outcome != BuildUpdated || read(t, "trimmed/ring-a.snap") != read(t, "fresh/ring-a.snap") {
		t.Errorf("without the ring before: outcome %s", report.Outcome)
	}
}

func TestBuildWarnsOfTheSpec(t *testing.T) {
	workdir(t, map[string]string{"v2.yaml": strings.Replace(trimmedManifest, "version: V3, pointsPerWeight: 40, weightUnit: 500", "version: V2, pointsPerWeight: 1", 1)})
	wantContains(t, succeed(t, "", "build", "-f", "v2.yaml", "-o", "v2"),
		"warning: FieldWithoutEffect: spec.algorithm.maxImbalance: set, and without effect with version V2")
}

// TestPreviousInChunks: the ring before is found in all chunks of it, and not where one of them is another's.
func TestPreviousInChunks(t *testing.T) {
	workdir(t, map[string]string{"trimmed.yaml": trimmedManifest})
	succeed(t, "", "build", "-f", "trimmed.yaml", "-o", "trimmed")
	snapshot := []byte(read(t, "trimmed/ring-a.snap"))
	d := outputDir{
		held:   map[string][]byte{"ring-a.snap": snapshot[:1000], "ring-a.snap.1": snapshot[1000:]},
		stable: routing.Reference{Slot: routing.SlotA, Digest: ring.Digest(snapshot), Version: "V3", Chunks: 2},
	}
	if r := d.previous(); r == nil || r.Digest() != ring.Digest(snapshot) {
		t.Error("the ring that is there in two chunks is not found")
	}
	d.held["ring-a.snap.1"] = snapshot[1001:]
	if d.previous() != nil {
		t.Error("chunks that do not belong together are taken for a ring")
	}
}
