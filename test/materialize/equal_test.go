// SPDX-License-Identifier: Apache-2.0

//go:build linux

package materialize

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubelet "k8s.io/kubernetes/pkg/volume/util"

	"github.com/ringwright/ringwright/internal/materialize"
)

// fileMode is that of the files of a ConfigMap volume that does not say another.
const fileMode = 0o644

const (
	sequences = 60
	steps     = 8
)

// writer is one of the two that are compared.
type writer func(dir string, files map[string][]byte) error

func ours(dir string, files map[string][]byte) error { return materialize.Write(dir, files) }

func theirs(dir string, files map[string][]byte) error {
	w, err := kubelet.NewAtomicWriter(dir, "test")
	if err != nil {
		return err
	}
	payload := make(map[string]kubelet.FileProjection, len(files))
	for name, content := range files {
		payload[name] = kubelet.FileProjection{Data: content, Mode: fileMode}
	}
	return w.Write(payload, nil)
}

// TestEqualsKubelet sends the same random sets of files, one after the other, through both writers, and compares after each what
// the directory holds, what of it is the same inode as before, and what a watch on it has seen.
func TestEqualsKubelet(t *testing.T) {
	for _, umask := range []int{0o022, 0o077, 0} {
		t.Run(fmt.Sprintf("umask %03o", umask), func(t *testing.T) {
			old := syscall.Umask(umask)
			defer syscall.Umask(old)
			for seed := range uint64(sequences) {
				if !t.Run(fmt.Sprint(seed), func(t *testing.T) { compareSequence(t, seed) }) {
					return
				}
			}
		})
	}
}

func compareSequence(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	sides := []*side{newSide(t, ours), newSide(t, theirs)}
	files := map[string][]byte{}
	for step := range steps {
		files = change(rnd, files)
		for _, s := range sides {
			s.step(t, files)
		}
		at := fmt.Sprintf("step %d, files %v", step, slices.Sorted(maps.Keys(files)))
		for what, pair := range map[string][2]any{
			"tree":        {sides[1].tree, sides[0].tree},
			"kept inodes": {sides[1].kept, sides[0].kept},
			"events":      {sides[1].events, sides[0].events},
		} {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Fatalf("%s: %s (-kubelet +ours):\n%s", at, what, diff)
			}
		}
		if n := strings.Count(strings.Join(slices.Sorted(maps.Keys(sides[0].tree)), "\n")+"\n", "..STAMP\n"); n != 1 {
			t.Fatalf("%s: %d directories of data are left, not 1", at, n)
		}
	}
}

// names are what a sequence picks from. Those of a projected volume may have directories; a name is never that of a file in
// one step and of a directory in another, because kubelet's writer fails then.
var names = []string{
	"routing.json", "ring-a.snap", "ring-a.snap.1", "ring-b.snap", "a/routing.json", "a/b/c", "a/b/d", "b/x", "b/..y", ".hidden", "with space",
}

// change returns the next set of files: in one of four cases the same, else some added, removed or with other content.
func change(rnd *rand.Rand, files map[string][]byte) map[string][]byte {
	next := maps.Clone(files)
	if rnd.IntN(4) == 0 {
		return next
	}
	for range 1 + rnd.IntN(4) {
		name := names[rnd.IntN(len(names))]
		if rnd.IntN(3) == 0 {
			delete(next, name)
			continue
		}
		next[name] = []byte(strings.Repeat("x", rnd.IntN(4)))
	}
	return next
}

// TestRefusesWhatKubeletRefuses compares the paths that are refused.
func TestRefusesWhatKubeletRefuses(t *testing.T) {
	long := strings.Repeat("b", 255)
	deep := strings.Repeat("d/", 2047) + "dd"
	for _, row := range []struct {
		path    string
		kubelet bool
		ours    bool
	}{
		{"a", true, true},
		{"a/b", true, true},
		{"a/..b", true, true},
		{long, true, true},
		{"", false, false},
		{"/a", false, false},
		{"../a", false, false},
		{"a/../b", false, false},
		{"..a", false, false},
		{"..a/b", false, false},
		{long + "b", false, false},
		{"a/" + long + "b", false, false},
		{deep + "d", false, false},
		// Kubelet's writer shortens these. Nobody who writes a ring has a use for them, so that one is a mistake.
		{"a//b", true, false},
		{"./a", true, false},
		{"a/", true, false},
	} {
		t.Run(fmt.Sprintf("%.20q", row.path), func(t *testing.T) {
			for name, w := range map[string]struct {
				write writer
				takes bool
			}{"kubelet": {theirs, row.kubelet}, "ours": {ours, row.ours}} {
				if err := w.write(t.TempDir(), map[string][]byte{row.path: nil}); (err == nil) != w.takes {
					t.Errorf("%s: %v, want taken: %v", name, err, w.takes)
				}
			}
		})
	}
}

// TestMendsWhatKubeletFailsOn: what a writer that was killed can leave, what another program can make, and a change of kind.
// Kubelet's writer fails or looks away; ours is used where nobody looks after a volume, so it mends or says so.
func TestMendsWhatKubeletFailsOn(t *testing.T) {
	files := map[string][]byte{"one": []byte("1")}
	type states map[string]struct {
		damage        func(dir string) error
		kubelet, ours bool
	}
	for name, row := range (states{
		"a link that was not renamed":     {func(dir string) error { return os.Symlink("x", dir+"/..data_tmp") }, false, true},
		"a file where a link belongs":     {func(dir string) error { return os.WriteFile(dir+"/one", nil, 0o600) }, true, false},
		"a directory that becomes a file": {func(dir string) error { return ours(dir, map[string][]byte{"one/two": nil}) }, false, true},
	}) {
		t.Run(name, func(t *testing.T) {
			for which, w := range map[string]struct {
				write writer
				works bool
			}{"kubelet": {theirs, row.kubelet}, "ours": {ours, row.ours}} {
				dir := t.TempDir()
				if err := row.damage(dir); err != nil {
					t.Fatal(err)
				}
				if err := w.write(dir, files); (err == nil) != w.works {
					t.Errorf("%s: %v, want success: %v", which, err, w.works)
				}
			}
		})
	}
}
