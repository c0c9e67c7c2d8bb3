// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migrationapi"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// pairFiles returns the files of a ring in migration: the stable one in slot b, as after an earlier migration, the candidate in slot a.
func pairFiles(t *testing.T, change func(*routing.File)) map[string][]byte {
	t.Helper()
	stable, candidate := builtOf(t, edgeManifest).Ring, builtOf(t, withoutC1).Ring
	ref := func(slot routing.Slot, digest string) routing.Reference {
		return routing.NewReference(slot, digest, "V2", 1)
	}
	to := ref(routing.SlotA, candidate.Digest())
	file := routing.File{
		APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: 7, Stable: ref(routing.SlotB, stable.Digest()), Candidate: &to,
		Split: &routing.Split{Seed: 2654435769, BasisPoints: map[string]int{"ams01": 500, "fra02": 5000, "lab01": 10000}},
	}
	if change != nil {
		change(&file)
	}
	text, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"routing.json": text, "ring-a.snap": candidate.Snapshot(), "ring-b.snap": stable.Snapshot()}
}

// pairDir writes them into a directory.
func pairDir(t *testing.T, change func(*routing.File)) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, data := range pairFiles(t, change) {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMigrationTrace(t *testing.T) {
	pairDir(t, nil)
	trace := func(args ...string) string {
		return succeed(t, "", append([]string{"migration", "trace", "--dir", "."}, args...)...)
	}
	assertGolden(t, "migration-trace-table", trace("--key", "/index.html", "--key", "-", "--datacenter", "fra02"))
	assertGolden(t, "migration-trace-nowhere", trace("--key", "/index.html"))
	assertGolden(t, "migration-trace-yaml", trace("--key", "00ff", "--hex", "--datacenter", "lab01", "-o", "yaml"))
	pairDir(t, func(f *routing.File) { f.Candidate, f.Split = nil, nil })
	assertGolden(t, "migration-trace-nosplit", trace("--key", "/index.html", "--datacenter", "lab01"))
	pairDir(t, func(f *routing.File) { f.Down = []string{"10.0.0.1:8080"} })
	wantContains(t, trace("--key", "/index.html"), "; the owner is down, so the next backend answers")
}

// TestMigrationTraceIsWhatReadersDo compares with the client, key by key, with features that only one of the rings can serve and a backend that is down.
func TestMigrationTraceIsWhatReadersDo(t *testing.T) {
	pairDir(t, func(f *routing.File) { f.Down = []string{"10.0.0.2:8080"} })
	var keys strings.Builder
	for i := range 500 {
		keys.WriteString("key-" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26)) + "\n")
	}
	write(t, "keys.txt", keys.String())
	for _, datacenter := range []string{"", "ams01", "fra02", "lab01"} {
		for _, features := range [][]string{nil, {"eu"}, {"ssd"}, {"eu", "ssd"}} {
			c, err := ringclient.Open(".", ringclient.Options{Datacenter: datacenter})
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"migration", "trace", "--dir", ".", "--key-file", "keys.txt", "-o", "json", "--features", strings.Join(features, ",")}
			if datacenter != "" {
				args = append(args, "--datacenter", datacenter)
			}
			var report TraceReport
			if err := json.Unmarshal([]byte(succeed(t, "", args...)), &report); err != nil {
				t.Fatal(err)
			}
			candidates := 0
			for _, k := range report.Keys {
				want, err := c.Pick([]byte(*k.Key), features...)
				if err != nil {
					t.Fatal(err)
				}
				if k.Backend.ID != want.ID() || (k.Decision == "candidate") != (want.Role() == ringclient.Candidate) {
					t.Fatalf("%s in %q with %q: %s on %s, want %s on %v", *k.Key, datacenter, features, k.Backend.ID, k.Decision, want.ID(), want.Role())
				}
				if k.Decision == "candidate" {
					candidates++
				}
			}
			if n := len(report.Keys); n != 500 || datacenter == "fra02" && features == nil && (candidates < 200 || candidates > 300) {
				t.Errorf("%d of %d keys on the candidate", candidates, n)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMigrationTraceSaysWhatChangesIt: with the share that it names, the decision is the other one.
func TestMigrationTraceSaysWhatChangesIt(t *testing.T) {
	bucket := routing.Bucket(ring.Hash([]byte("/index.html")), 2654435769)
	for share, decision := range map[int]string{bucket: "stable", bucket + 1: "candidate"} {
		pairDir(t, func(f *routing.File) { f.Split.BasisPoints["ams01"] = share })
		out := succeed(t, "", "migration", "trace", "--dir", ".", "--key", "/index.html", "--datacenter", "ams01")
		wantContains(t, out, ", on the "+decision+" ring\n")
		wantContains(t, out, map[string]string{
			"stable":    "from " + migrationapi.Percent(bucket+1) + " on it goes to the candidate",
			"candidate": "below " + migrationapi.Percent(bucket+1) + " it stays on the stable ring",
		}[decision])
	}
}

// TestMigrationTraceInACluster: by the name of the ring, or of its migration.
func TestMigrationTraceInACluster(t *testing.T) {
	var objects []client.Object
	for name, data := range pairFiles(t, nil) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "edge-" + strings.TrimSuffix(strings.TrimPrefix(name, "ring-"), ".snap")}, BinaryData: map[string][]byte{name: data}}
		if name == "routing.json" {
			cm.Name, cm.BinaryData, cm.Data = "edge-routing", nil, map[string]string{name: string(data)}
		}
		objects = append(objects, cm)
	}
	several := migrationNamed("several", "x")
	several.Status.Rings = []v1alpha1.MigrationRing{{Name: "edge"}, {Name: "images"}}
	live := storeOf(t, interceptor.Funcs{}, append(objects, migrationNamed("v1-to-v3", "edge"), several)...)
	trace := func(name string) (string, error) {
		streams, out, _ := ioOf("")
		o := &migrationTraceOptions{streams: streams, output: &formatFlag{value: formatTable}, keys: []string{"/index.html"}, datacenter: "lab01"}
		err := o.run(t.Context(), cluster{reader: live.client, namespace: "cdn", name: name, again: publicationTime})
		return out.String(), err
	}
	for _, name := range []string{"edge", "v1-to-v3"} {
		out, err := trace(name)
		if err != nil {
			t.Fatal(err)
		}
		wantContains(t, out, "slot b, ")
		wantContains(t, out, ", on the candidate ring\n")
	}
	_, err := trace("several")
	wantError(t, err, "RingMigration cdn/several has 2 HashRings: name the one to trace in: edge, images")
	_, err = trace("none")
	wantError(t, err, "no ring of the name none has been published in namespace cdn; nor is there a RingMigration of that name")
}

func TestMigrationTraceErrors(t *testing.T) {
	pairDir(t, nil)
	for want, args := range map[string][]string{
		"no key given: --key gives one, --key-file a file of them":   {"--dir", "."},
		"--key and --key-file cannot be used together":               {"--dir", ".", "--key", "a", "--key-file", "b"},
		`--datacenter is "*", it must be the name of a datacenter`:   {"--dir", ".", "--key", "a", "--datacenter", "*"},
		"no ring given: name a HashRing":                             {"--key", "a"},
		"--namespace is for a cluster: it cannot be used with --dir": {"--dir", ".", "--key", "a", "-n", "cdn"},
		`unexpected argument "x"`:                                    {"--dir", ".", "--key", "a", "x"},
	} {
		wantContains(t, fail(t, ExitUsage, append([]string{"migration", "trace"}, args...)...), want)
	}
	for want, args := range map[string][]string{
		`--features: unknown feature "gpu"`:       {"--key", "a", "--features", "gpu"},
		"reading the keys: open none: no such fi": {"--key-file", "none"},
		`key 1: "0" is not hex`:                   {"--hex", "--key", "0"},
	} {
		wantContains(t, fail(t, ExitFailure, append([]string{"migration", "trace", "--dir", "."}, args...)...), want)
	}
	wantContains(t, succeed(t, "a\nb\n", "migration", "trace", "--dir", ".", "--key-file", "-"), "\nb\n  hash ")
	if err := os.WriteFile(filepath.Join(".", "ring-a.snap"), pairFiles(t, nil)["ring-b.snap"], 0o600); err != nil {
		t.Fatal(err)
	}
	wantContains(t, fail(t, ExitFailure, "migration", "trace", "--dir", ".", "--key", "a"), "the candidate: ring-a.snap has the digest sha256:")
	succeed(t, "", "lookup", "--dir", ".", "a")
}
