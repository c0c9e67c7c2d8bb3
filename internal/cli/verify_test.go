// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/pkg/ring"
)

// verifyOf runs verify and returns its report and exit code.
func verifyOf(t *testing.T, args ...string) (VerifyReport, int) {
	t.Helper()
	got := run(t, "", append([]string{"verify", "-o", "json"}, args...)...)
	var report VerifyReport
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%v\n%s%s", err, got.out, got.errOut)
	}
	return report, got.code
}

// notOK returns the checks that did not end well, as text.
func notOK(r VerifyReport) []string {
	var list []string
	for _, c := range r.Checks {
		if c.Result != CheckOK {
			list = append(list, fmt.Sprintf("%s %s: %s", c.Result, c.Subject, c.Check))
		}
	}
	return list
}

func TestVerifyOutput(t *testing.T) {
	workdir(t, nil)
	assertGolden(t, "verify-table", succeed(t, "", "verify", "--dir", "edge", "-f", "edge.yaml"))
	assertGolden(t, "verify-snapshot", succeed(t, "", "verify", "--snapshot", "edge/ring-a.snap", "-f", "edge.yaml"))
	assertGolden(t, "verify-yaml", succeed(t, "", "verify", "--snapshot", "edge/ring-a.snap", "-o", "yaml"))
	replace(t, "edge.yaml", "weight: 20", "weight: 30")
	damage(t, "edge/ring-b.snap")
	got := run(t, "", "verify", "--dir", "edge", "-f", "edge.yaml")
	assertGolden(t, "verify-failed", got.out+got.errOut)
	if got.code != ExitFailure {
		t.Errorf("exit code %d", got.code)
	}
}

func TestVerifyFindsWhatIsWrong(t *testing.T) {
	const (
		a, b, routing = "edge/ring-a.snap", "edge/ring-b.snap", "edge/routing.json"
		digest        = ": has the digest that routing.json names"
		canonical     = ": is in canonical form"
		rebuilt       = ": building its backends again gives the same bytes"
		version       = ": has the algorithm that routing.json names"
		addresses     = ": has the addresses that the ring needs"
	)
	for name, test := range map[string]struct {
		change func(t *testing.T)
		want   []string
	}{
		"nothing": {func(*testing.T) {}, nil},
		"a damaged snapshot": {func(t *testing.T) { damage(t, a) }, []string{
			"failed " + a + digest, "failed " + a + canonical, "skipped " + a + rebuilt, "skipped " + a + version, "skipped " + routing + addresses,
		}},
		"no snapshot": {func(t *testing.T) { remove(t, a) }, []string{
			"failed " + a + digest, "failed " + a + canonical, "skipped " + a + rebuilt, "skipped " + a + version, "skipped " + routing + addresses,
		}},
		"an empty slot": {func(t *testing.T) { write(t, a, string(ring.EmptySlot())) }, []string{
			"failed " + a + digest, "failed " + a + canonical, "skipped " + a + rebuilt, "skipped " + a + version, "skipped " + routing + addresses,
		}},
		"the snapshot of names": {func(t *testing.T) { write(t, a, read(t, "shards/ring-a.snap")) }, []string{
			"failed " + a + digest, "failed " + routing + addresses,
		}},
		"a point of another backend": {func(t *testing.T) { swapOwner(t, a) }, []string{
			"failed " + a + digest, "failed " + a + rebuilt,
		}},
		"an edited routing file": {func(t *testing.T) { replace(t, routing, `"generation":1`, `"generation": 1`) }, []string{
			"failed " + routing + ": is canonical",
		}},
		"a damaged routing file": {func(t *testing.T) { write(t, routing, strings.Replace(read(t, routing), "cdn/", "cdm/", 1)) }, []string{
			"failed " + routing + ": is canonical", "skipped " + a + digest, "skipped " + a + version, "skipped " + routing + addresses,
		}},
		"a routing file that cannot be read": {func(t *testing.T) { write(t, routing, "{}") }, []string{
			"failed " + routing + ": is canonical", "skipped " + a + digest, "skipped " + a + version, "skipped " + routing + addresses,
		}},
		"no routing file": {func(t *testing.T) { remove(t, routing) }, []string{
			"failed " + routing + ": is canonical", "skipped " + a + digest, "skipped " + a + version, "skipped " + routing + addresses,
		}},
		"another algorithm": {func(t *testing.T) { replace(t, routing, `"V2"`, `"V1"`) }, []string{"failed " + a + version}},
		"a damaged marker":  {func(t *testing.T) { damage(t, b) }, []string{"failed " + b + ": is empty or holds a ring"}},
		"no second slot":    {func(t *testing.T) { remove(t, b) }, []string{"failed " + b + ": is empty or holds a ring"}},
		"a second ring":     {func(t *testing.T) { write(t, b, read(t, "shards/ring-a.snap")) }, nil},
		"the slots swapped": {func(t *testing.T) {
			write(t, b, read(t, a))
			write(t, a, string(ring.EmptySlot()))
			replace(t, routing, `"slot":"a"`, `"slot":"b"`)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			workdir(t, nil)
			test.change(t)
			report, code := verifyOf(t, "--dir", "edge")
			if diff := cmp.Diff(test.want, notOK(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if failed := len(test.want) > 0; report.OK == failed || (code == ExitFailure) != failed {
				t.Errorf("ok %v, exit code %d", report.OK, code)
			}
		})
	}
}

// swapOwner gives the first point of a snapshot to another backend and mends the checksum, so that only building the ring
// again can tell.
func swapOwner(t *testing.T, path string) {
	t.Helper()
	data := []byte(read(t, path))
	r, err := ring.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	// The entries end 8 bytes of slack, the padding and 8 bytes of trailer before the end; the owner is in the low bits of
	// an entry. Try bits near the end until the result is still canonical.
	for at := len(data) - 32; at > len(data)/2; at-- {
		changed := []byte(read(t, path))
		changed[at] ^= 1
		binary.LittleEndian.PutUint32(changed[len(changed)-4:], crc32.Checksum(changed[:len(changed)-4], crc32.MakeTable(crc32.Castagnoli)))
		if other, err := ring.Open(changed); err == nil && other.PointCount() == r.PointCount() {
			write(t, path, string(changed))
			return
		}
	}
	t.Fatal("no bit can be changed")
}

func TestVerifyComparesAManifest(t *testing.T) {
	const snapshot, routed = "m.yaml: gives the published snapshot", "m.yaml: gives the published routing.json"
	two := edgeManifest + "---\n" + shardsManifest
	for name, test := range map[string]struct {
		manifest string
		args     []string
		want     []string
	}{
		"the same":               {edgeManifest, []string{"--dir", "edge"}, nil},
		"chosen by the ring":     {two, []string{"--dir", "edge"}, nil},
		"chosen for a snapshot":  {two, []string{"--snapshot", "edge/ring-a.snap", "--name", "edge"}, nil},
		"no namespace":           {strings.Replace(edgeManifest, ", namespace: cdn", "", 1), []string{"--dir", "edge"}, nil},
		"of another weight":      {strings.Replace(edgeManifest, "weight: 20", "weight: 2", 1), []string{"--dir", "edge"}, []string{"failed " + snapshot, "failed " + routed}},
		"of another address":     {strings.Replace(shardsManifest, "10.0.1.1", "10.0.1.2", 1), []string{"--dir", "shards"}, []string{"failed " + routed}},
		"of no backends":         {edgeManifest[:strings.Index(edgeManifest, "  backends:")], []string{"--dir", "edge"}, []string{"failed " + snapshot}},
		"that would be refused":  {strings.Replace(edgeManifest, "weight: 20", "wieght: 2", 1), []string{"--dir", "edge"}, []string{"failed m.yaml: the API server would accept it"}},
		"of names of a snapshot": {shardsManifest, []string{"--snapshot", "shards/ring-a.snap"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			workdir(t, map[string]string{"m.yaml": test.manifest})
			report, _ := verifyOf(t, append(test.args, "-f", "m.yaml")...)
			if diff := cmp.Diff(test.want, notOK(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	workdir(t, nil)
	wantContains(t, fail(t, ExitUsage, "verify", "--dir", "edge", "--name", "x"), "it needs -f")
	wantContains(t, fail(t, ExitUsage, "verify"), "no ring given")
	wantContains(t, fail(t, ExitFailure, "verify", "--dir", "nope"), "nope: no such file or directory")
	wantContains(t, fail(t, ExitFailure, "verify", "--dir", "edge", "-f", "edge.yaml", "--name", "x"), `--name is "x", the published ring is "edge"`)
	wantContains(t, fail(t, ExitFailure, "verify", "--dir", "edge", "-f", "shards.yaml"), `shards.yaml has no HashRing of the name "edge", only shards`)
	wantContains(t, fail(t, ExitFailure, "verify", "--dir", "edge", "-f", "nope.yaml"), "reading the manifest: open nope.yaml")
}
