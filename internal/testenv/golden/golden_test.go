// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a testing.TB that keeps what is reported.
type recorder struct {
	testing.TB
	reports []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.reports = append(r.reports, fmt.Sprintf(format, args...))
}

// setUpdate sets the flag for one test, whatever the command line says.
func setUpdate(t *testing.T, value bool) {
	old := *update
	t.Cleanup(func() { *update = old })
	*update = value
}

func TestAssert(t *testing.T) {
	setUpdate(t, false)
	tests := map[string]struct {
		want, got string
		reports   []string // What the one report has; nil for no report.
	}{
		"equal":        {want: "a\nb\n", got: "a\nb\n"},
		"text":         {want: "a\nb\n", got: "a\nc\n", reports: []string{"-update", "b", "c", "+got"}},
		"binary":       {want: "\x00\x01\x02", got: "\x00\x01\x03", reports: []string{"byte 2", "[02]", "[03]"}},
		"binary short": {want: "\x00\x01", got: "\x00", reports: []string{"2 bytes, got 1", "byte 1", "got ends"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file.golden")
			if err := os.WriteFile(path, []byte(tc.want), 0o600); err != nil {
				t.Fatal(err)
			}
			r := &recorder{TB: t}
			Assert(r, path, []byte(tc.got))
			if len(r.reports) != min(1, len(tc.reports)) {
				t.Fatalf("reports = %q", r.reports)
			}
			for _, part := range tc.reports {
				if !strings.Contains(r.reports[0], part) {
					t.Errorf("the report lacks %q:\n%s", part, r.reports[0])
				}
			}
		})
	}
}

func TestAssertMissingFile(t *testing.T) {
	setUpdate(t, false)
	r := &recorder{TB: t}
	Assert(r, filepath.Join(t.TempDir(), "none.golden"), nil)
	if len(r.reports) != 1 || !strings.Contains(r.reports[0], "does not exist") {
		t.Errorf("reports = %q", r.reports)
	}
}

func TestAssertUpdate(t *testing.T) {
	setUpdate(t, true)
	path := filepath.Join(t.TempDir(), "new", "file.golden")
	Assert(t, path, []byte("first"))
	Assert(t, path, []byte("second"))
	setUpdate(t, false)
	Assert(t, path, []byte("second"))
}
