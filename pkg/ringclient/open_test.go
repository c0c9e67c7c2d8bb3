// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ringwright/ringwright/internal/routingtest"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// folders moves each file of a publication into the subdirectory that its ConfigMap would be mounted at.
func folders(files map[string][]byte) map[string]map[string][]byte {
	return map[string]map[string][]byte{
		"routing": {"routing.json": files["routing.json"]},
		"a":       {"ring-a.snap": files["ring-a.snap"]},
		"b":       {"ring-b.snap": files["ring-b.snap"]},
	}
}

func TestOpenReadsEveryLayout(t *testing.T) {
	r := addressRing(t, 9)
	p := published(7, r)
	p.slot = routing.SlotB
	files := p.files(t)
	layouts := map[string]func(dir string){
		"one volume":      func(dir string) { mount(t, dir, files) },
		"plain directory": func(dir string) { writePlain(t, dir, files) },
		"three volumes": func(dir string) {
			for name, content := range folders(files) {
				mount(t, filepath.Join(dir, name), content)
			}
		},
		"one volume with subdirectories": func(dir string) {
			nested := map[string][]byte{}
			for folder, content := range folders(files) {
				for name, data := range content {
					nested[folder+"/"+name] = data
				}
			}
			mount(t, dir, nested)
		},
		"absolute link": func(dir string) {
			elsewhere := t.TempDir()
			writePlain(t, elsewhere, files)
			if err := os.Symlink(elsewhere, filepath.Join(dir, "..data")); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, lay := range layouts {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lay(dir)
			c := open(t, dir, ringclient.Options{})
			s := c.State()
			if s.RingName() != "cdn/edge" || s.Generation() != 7 || s.Digest() != r.Digest() || s.Version() != ring.V2 {
				t.Errorf("state: %s, generation %d, %s, %s", s.RingName(), s.Generation(), s.Digest(), s.Version())
			}
			got, err := c.Lookup([]byte("key"), nil, 3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(owners(t, r, "key", 3), ids(got)); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

// futureFormat returns the snapshot with another format version and a right checksum.
func futureFormat(snapshot []byte) []byte { return resealed(snapshot, 8) }

// resealed returns the snapshot with one byte changed and a right checksum.
func resealed(snapshot []byte, at int) []byte {
	changed := slices.Clone(snapshot)
	changed[at]++
	body := changed[:len(changed)-4]
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return append(body, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
}

// replaced returns text with old replaced, which must be there.
func replaced(t *testing.T, text, old, with string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("%q does not hold %q", text, old)
	}
	return routingtest.Reseal(strings.Replace(text, old, with, 1))
}

func TestOpenRefuses(t *testing.T) {
	r := addressRing(t, 9)
	good := published(1, r).files(t)
	snapshot := r.Snapshot()
	flipped := slices.Clone(snapshot)
	flipped[len(flipped)/2] ^= 1
	future := futureFormat(snapshot)
	size := fmt.Sprint(len(snapshot))
	edit := func(old, with string) []byte {
		return []byte(routingtest.Reseal(strings.Replace(string(good["routing.json"]), old, with, 1)))
	}
	cases := map[string]struct {
		change map[string][]byte // a nil content removes the file
		limit  int64
		want   ringclient.LoadError
	}{
		"no routing file": {
			change: map[string][]byte{"routing.json": nil},
			want:   ringclient.LoadError{Reason: ringclient.ReasonMissing, File: "routing.json"},
		},
		"no slot file": {
			change: map[string][]byte{"ring-a.snap": nil},
			want:   ringclient.LoadError{Reason: ringclient.ReasonMissing, File: "ring-a.snap"},
		},
		"routing cut short": {
			change: map[string][]byte{"routing.json": good["routing.json"][:40]},
			want:   ringclient.LoadError{Reason: ringclient.ReasonRouting, File: "routing.json"},
		},
		"routing with an unknown field": {
			change: map[string][]byte{"routing.json": edit(`{`, `{"overflow":{},`)},
			want:   ringclient.LoadError{Reason: ringclient.ReasonRouting, File: "routing.json"},
		},
		"routing with a flipped bit": {
			change: map[string][]byte{"routing.json": bytes.Replace(good["routing.json"], []byte("cdn/"), []byte("cdm/"), 1)},
			want:   ringclient.LoadError{Reason: ringclient.ReasonRouting, File: "routing.json"},
		},
		"routing of a future version": {
			change: map[string][]byte{"routing.json": edit("/v1alpha1", "/v2")},
			want:   ringclient.LoadError{Reason: ringclient.ReasonRouting, File: "routing.json"},
		},
		"routing too large": {
			change: map[string][]byte{"routing.json": make([]byte, routing.MaxBytes+1)},
			want:   ringclient.LoadError{Reason: ringclient.ReasonTooLarge, File: "routing.json", Value: "524289", Limit: "524288"},
		},
		"snapshot too large": {
			limit: int64(len(snapshot)) - 1,
			want: ringclient.LoadError{
				Reason: ringclient.ReasonTooLarge, File: "ring-a.snap", Value: size, Limit: fmt.Sprint(len(snapshot) - 1),
			},
		},
		"snapshot cut short": {
			change: map[string][]byte{"ring-a.snap": snapshot[:len(snapshot)-1]},
			want: ringclient.LoadError{
				Reason: ringclient.ReasonDigest, File: "ring-a.snap", Value: ring.Digest(snapshot[:len(snapshot)-1]), Limit: r.Digest(),
			},
		},
		"snapshot empty": {
			change: map[string][]byte{"ring-a.snap": {}},
			want: ringclient.LoadError{
				Reason: ringclient.ReasonDigest, File: "ring-a.snap", Value: ring.Digest(nil), Limit: r.Digest(),
			},
		},
		"snapshot with a flipped bit": {
			change: map[string][]byte{"ring-a.snap": flipped},
			want:   ringclient.LoadError{Reason: ringclient.ReasonDigest, File: "ring-a.snap", Value: ring.Digest(flipped), Limit: r.Digest()},
		},
		"slot is empty": {
			change: map[string][]byte{"ring-a.snap": ring.EmptySlot()},
			want:   ringclient.LoadError{Reason: ringclient.ReasonEmptySlot, File: "ring-a.snap", Limit: r.Digest()},
		},
		"snapshot of a future format": {
			change: map[string][]byte{"ring-a.snap": future, "routing.json": edit(r.Digest(), ring.Digest(future))},
			want:   ringclient.LoadError{Reason: ringclient.ReasonSnapshot, File: "ring-a.snap"},
		},
		"another algorithm than routing says": {
			change: map[string][]byte{"routing.json": edit(`"V2"`, `"V1"`)},
			want:   ringclient.LoadError{Reason: ringclient.ReasonVersion, File: "ring-a.snap", Value: "V2", Limit: "V1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{}
			for file, content := range good {
				files[file] = content
			}
			for file, content := range tc.change {
				files[file] = content
				if content == nil {
					delete(files, file)
				}
			}
			dir := t.TempDir()
			mount(t, dir, files)
			tc.want.File = filepath.Join(dir, tc.want.File)
			checkRefused(t, dir, ringclient.Options{MaxSnapshotBytes: tc.limit}, tc.want)
		})
	}
}

// checkRefused opens dir and compares the error with want, save for its text, which must hold the file, value and limit.
func checkRefused(t *testing.T, dir string, options ringclient.Options, want ringclient.LoadError) {
	t.Helper()
	_, err := ringclient.Open(dir, options)
	var got *ringclient.LoadError
	if !errors.As(err, &got) {
		t.Fatalf("error %v, want a LoadError", err)
	}
	if diff := cmp.Diff(want, *got, cmpopts.IgnoreFields(ringclient.LoadError{}, "Err")); diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	for _, part := range []string{want.File, want.Value, want.Limit} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "routing.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, dir, ringclient.Options{}, ringclient.LoadError{
		Reason: ringclient.ReasonUnreadable, File: filepath.Join(dir, "routing.json"),
	})
}

func TestOpenRefusesMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	_, err := ringclient.Open(dir, ringclient.Options{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want ErrNotExist", err)
	}
}

// TestOpenTakesFilesAtTheirLimits holds the other side of the limits in TestOpenRefuses.
func TestOpenTakesFilesAtTheirLimits(t *testing.T) {
	r := addressRing(t, 9)
	files := published(1, r).files(t)
	const seal = `,"checksum":"00000000"}` + "\n" // Without it there can be white space.
	file := string(files["routing.json"][:len(files["routing.json"])-len(seal)]) + "}"
	files["routing.json"] = []byte(file + strings.Repeat(" ", routing.MaxBytes-len(file)))
	dir := t.TempDir()
	mount(t, dir, files)
	open(t, dir, ringclient.Options{MaxSnapshotBytes: int64(len(r.Snapshot()))})
}

func TestOpenChecksOptions(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, published(1, addressRing(t, 3)).files(t))
	for name, tc := range map[string]struct {
		options ringclient.Options
		want    ringclient.OptionError
	}{
		"poll too often": {
			ringclient.Options{PollInterval: ringclient.MinPollInterval - 1},
			ringclient.OptionError{Field: "PollInterval", Value: "9.999999ms", Limit: "at least 10ms"},
		},
		"negative poll": {
			ringclient.Options{PollInterval: -time.Second},
			ringclient.OptionError{Field: "PollInterval", Value: "-1s", Limit: "at least 10ms"},
		},
		"too many points": {
			ringclient.Options{MaxPoints: ring.HardMaxPoints + 1},
			ringclient.OptionError{Field: "MaxPoints", Value: "2147483648", Limit: "at most 2147483647"},
		},
		"negative size": {
			ringclient.Options{MaxSnapshotBytes: -1},
			ringclient.OptionError{Field: "MaxSnapshotBytes", Value: "-1", Limit: "at least 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ringclient.Open(dir, tc.options)
			var got *ringclient.OptionError
			if !errors.As(err, &got) {
				t.Fatalf("error %v, want an OptionError", err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	open(t, dir, ringclient.Options{PollInterval: ringclient.MinPollInterval})
}
