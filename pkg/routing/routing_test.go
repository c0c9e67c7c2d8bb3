// SPDX-License-Identifier: Apache-2.0

package routing_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/pkg/routing"
)

const digest = "sha256:ca279c86cc5b283f0ed766f5fa10525b0132a6aaf741bfbebe932f01aad21391"

func file() routing.File {
	return routing.File{
		APIVersion: routing.APIVersion, Ring: "cdn/edge", UID: "u-1", Generation: 41,
		Stable:    routing.Reference{Slot: routing.SlotA, Digest: digest, Version: "V2"},
		Addresses: map[string]string{"c2": "10.0.0.2:80", "c1": "[::1]:80", "c<&>": "x:1"},
	}
}

// TestCanonicalBytes pins the form: readers in other languages and digests depend on it.
func TestCanonicalBytes(t *testing.T) {
	want := `{"apiVersion":"ringwright.dev/v1alpha1","ring":"cdn/edge","uid":"u-1","generation":41,` +
		`"stable":{"slot":"a","digest":"` + digest + `","version":"V2"},` +
		`"addresses":{"c1":"[::1]:80","c2":"10.0.0.2:80","c<&>":"x:1"},"checksum":"a3dd2902"}` + "\n"
	got, err := file().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
	parsed, err := routing.Parse(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(file(), parsed); diff != "" {
		t.Errorf("parsed again (-want +got):\n%s", diff)
	}
}

func TestOptionalFieldsAreLeftOut(t *testing.T) {
	f := file()
	f.UID, f.Addresses = "", nil
	got, err := f.Encode()
	if err != nil || strings.Contains(string(got), "uid") || strings.Contains(string(got), "addresses") {
		t.Errorf("%s, error %v", got, err)
	}
}

// TestChunks: one file is not counted, so that readers of before chunks take it; more are, so that they refuse it.
func TestChunks(t *testing.T) {
	for files, want := range map[int]string{1: `"version":"V2"}`, 2: `"version":"V2","chunks":2}`, 16: `"version":"V2","chunks":16}`} {
		f := file()
		f.Stable = routing.NewReference(routing.SlotB, digest, "V2", files)
		got, err := f.Encode()
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%d files: %s, error %v", files, got, err)
		}
		if names := f.Stable.Files(); len(names) != files || names[0] != "ring-b.snap" || files > 1 && names[1] != "ring-b.snap.1" {
			t.Errorf("%d files are called %q", files, names)
		}
	}
}

// migrating returns the file of a migration that has begun in one datacenter.
func migrating() routing.File {
	f := file()
	f.LeaderEpoch, f.Stable.Revision = 12, 7
	f.Candidate = &routing.Reference{Slot: routing.SlotB, Digest: digest, Version: "V3", Revision: 8, Chunks: 2}
	f.Split = &routing.Split{Seed: 2654435769, BasisPoints: map[string]int{"lab01": 50, routing.AnyDatacenter: 0}}
	return f
}

// TestMigrationBytes pins the form of what a migration adds.
func TestMigrationBytes(t *testing.T) {
	want := `{"apiVersion":"ringwright.dev/v1alpha1","ring":"cdn/edge","uid":"u-1","generation":41,"leaderEpoch":12,` +
		`"stable":{"slot":"a","digest":"` + digest + `","version":"V2","revision":7},` +
		`"candidate":{"slot":"b","digest":"` + digest + `","version":"V3","revision":8,"chunks":2},` +
		`"split":{"seed":2654435769,"basisPoints":{"*":0,"lab01":50}},` +
		`"addresses":{"c1":"[::1]:80","c2":"10.0.0.2:80","c<&>":"x:1"},"checksum":"eaa6fcda"}` + "\n"
	got, err := migrating().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
	parsed, err := routing.Parse(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(migrating(), parsed); diff != "" {
		t.Errorf("parsed again (-want +got):\n%s", diff)
	}
}

func TestMigrationRefused(t *testing.T) {
	many := map[string]int{}
	for i := range routing.MaxDatacenters {
		many[fmt.Sprint(i)] = 1
	}
	longest := strings.Repeat("d", routing.MaxDatacenterBytes)
	rows := map[string]struct {
		change func(f *routing.File)
		want   string // "" is accepted
	}{
		"as it is":           {func(*routing.File) {}, ""},
		"no split yet":       {func(f *routing.File) { f.Split = nil }, ""},
		"in the stable slot": {func(f *routing.File) { f.Candidate.Slot = "a" }, `candidate.slot is "a", which is that of stable`},
		"slot c":             {func(f *routing.File) { f.Candidate.Slot = "c" }, `candidate.slot is "c", not a or b`},
		"no digest":          {func(f *routing.File) { f.Candidate.Digest = "" }, `candidate.digest is ""`},
		"no basis points":    {func(f *routing.File) { f.Split.BasisPoints = nil }, "split.basisPoints is missing"},
		"none of them":       {func(f *routing.File) { f.Split.BasisPoints = map[string]int{} }, ""},
		"all keys":           {func(f *routing.File) { f.Split.BasisPoints["lab01"] = 10_000 }, ""},
		"more than all":      {func(f *routing.File) { f.Split.BasisPoints["lab01"] = 10_001 }, `split.basisPoints["lab01"] is 10001, not 0 to 10000`},
		"less than none":     {func(f *routing.File) { f.Split.BasisPoints["*"] = -1 }, `split.basisPoints["*"] is -1, not 0 to 10000`},
		"nameless":           {func(f *routing.File) { f.Split.BasisPoints[""] = 1 }, `the datacenter "", whose name has 0 bytes, not 1 to 63`},
		"longest name":       {func(f *routing.File) { f.Split.BasisPoints[longest] = 1 }, ""},
		"name too long":      {func(f *routing.File) { f.Split.BasisPoints[longest+"d"] = 1 }, "whose name has 64 bytes, not 1 to 63"},
		"as many as may be":  {func(f *routing.File) { f.Split.BasisPoints = many }, ""},
		"one more":           {func(f *routing.File) { many["one more"] = 1; f.Split.BasisPoints = many }, "has 1025 entries, the limit is 1024"},
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) { // "one more" changes what "as many as may be" has.
		t.Run(name, func(t *testing.T) {
			f := migrating()
			rows[name].change(&f)
			_, err := f.Encode()
			if want := rows[name].want; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one that says %q", err, want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	rows := map[string]struct{ old, replacement, want string }{
		"another version":  {"v1alpha1", "v9", `apiVersion is "ringwright.dev/v9"`},
		"no namespace":     {"cdn/edge", "edge", `ring is "edge"`},
		"generation 0":     {":41", ":0", "generation is 0"},
		"slot c":           {`"slot":"a"`, `"slot":"c"`, `stable.slot is "c"`},
		"short digest":     {digest, "sha256:00", `stable.digest is "sha256:00"`},
		"no version":       {`"version":"V2"`, `"version":""`, "stable.version is missing"},
		"one chunk":        {`"V2"`, `"V2","chunks":1`, "stable.chunks is 1, not 2 to 16"},
		"17 chunks":        {`"V2"`, `"V2","chunks":17`, "stable.chunks is 17"},
		"less than none":   {`"V2"`, `"V2","chunks":-1`, "stable.chunks is -1"},
		"epoch below 0":    {`"stable"`, `"leaderEpoch":-1,"stable"`, "leaderEpoch is -1, not at least 0"},
		"revision below 0": {`"V2"`, `"V2","revision":-1`, "stable.revision is -1, not at least 0"},
		"split alone":      {`,"addresses"`, `,"split":{"seed":1,"basisPoints":{"*":1}},"addresses"`, "split is there without a candidate"},
		"unknown field":    {`"uid"`, `"zone"`, `unknown field "zone"`},
		"not JSON":         {"{", "[", "invalid character"},
		"something behind": {"\n", "{}", "something behind the object"},
		"a brace behind":   {"\n", "}", "something behind the object"},
		"text behind":      {"\n", " ]x", "something behind the object"},
		"cut short":        {"}}\n", "", "unexpected EOF"},
	}
	good, err := file().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(unsealed(good), row.old, row.replacement, 1)
			if _, err := routing.Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want one that says %q", err, row.want)
			}
		})
	}
}

// unsealed returns a file without its checksum, as a person would write it.
func unsealed(encoded []byte) string {
	return regexp.MustCompile(`,"checksum":"[0-9a-f]{8}"`).ReplaceAllString(string(encoded), "")
}

// TestChecksum: no byte of a file can change unnoticed, and a file without one is read.
func TestChecksum(t *testing.T) {
	good, err := migrating().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for at := range good {
		for bit := range 8 {
			flipped := slices.Clone(good)
			flipped[at] ^= 1 << bit
			if parsed, err := routing.Parse(flipped); err == nil {
				t.Errorf("bit %d of byte %d is flipped: %+v", bit, at, parsed)
			}
		}
	}
	if parsed, err := routing.Parse([]byte(unsealed(good))); err != nil || !cmp.Equal(parsed, migrating()) {
		t.Errorf("without a checksum: %+v, %v", parsed, err)
	}
	for text, want := range map[string]string{
		strings.Replace(string(good), "lab01", "lab02", 1): `of the content is`,
		strings.TrimSpace(string(good)):                    "not the last field in its canonical form",
		strings.Replace(unsealed(good), `"ring"`, `"checksum":"`+string(good[len(good)-11:len(good)-3])+`","ring"`, 1): "not the last field in its canonical form",
	} {
		if _, err := routing.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.120s: error %v, want one that says %q", text, err, want)
		}
	}
}

func TestMaxBytes(t *testing.T) {
	f := file()
	f.Addresses = map[string]string{"c": strings.Repeat("x", routing.MaxBytes)}
	if _, err := f.Encode(); err == nil || !strings.Contains(err.Error(), "524288") {
		t.Errorf("encoding: %v", err)
	}
	if _, err := routing.Parse(make([]byte, routing.MaxBytes+1)); err == nil || !strings.Contains(err.Error(), "524289 bytes, the limit is 524288") {
		t.Errorf("parsing: %v", err)
	}
	f.Addresses = nil
	if _, err := (routing.File{}).Encode(); err == nil {
		t.Error("an empty file was encoded")
	}
}

// TestDown: ascending, each once, and left out where none is.
func TestDown(t *testing.T) {
	f := file()
	f.Down = []string{"c1", "c2"}
	got, err := f.Encode()
	if err != nil || !strings.Contains(string(got), `},"down":["c1","c2"],"checksum":`) {
		t.Errorf("%s, error %v", got, err)
	}
	if parsed, err := routing.Parse(got); err != nil || !cmp.Equal(f, parsed) {
		t.Errorf("parsed again: %+v, %v", parsed, err)
	}
	for _, bad := range [][]string{{"c2", "c1"}, {"c1", "c1"}, {""}, {"c1", ""}} {
		f.Down = bad
		if _, err := f.Encode(); err == nil || !strings.Contains(err.Error(), "down[") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
