// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// runCommand calls run and returns the exit code with what it printed.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	errFile, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer errFile.Close()
	var out bytes.Buffer
	code = run(t.Context(), args, &out, errFile)
	data, err := os.ReadFile(errFile.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String(), string(data)
}

func TestRunPrintsOnlyTheDirectory(t *testing.T) {
	dir := t.TempDir()
	writePrograms(t, dir, etcd, apiServer)
	t.Setenv(assetsVariable, dir)
	code, stdout, stderr := runCommand(t)
	if code != 0 || stdout != dir+"\n" || stderr != "" {
		t.Errorf("run = %d, %q, %q", code, stdout, stderr)
	}
}

func TestRunReportsABadVariable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(assetsVariable, dir)
	code, stdout, stderr := runCommand(t)
	if code != exitFailure || stdout != "" || !strings.Contains(stderr, assetsVariable) || !strings.Contains(stderr, dir) {
		t.Errorf("run = %d, %q, %q", code, stdout, stderr)
	}
}

func TestRunNeedsACacheDirectoryOnlyToUseIt(t *testing.T) {
	dir := t.TempDir()
	writePrograms(t, dir, etcd, apiServer)
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv(assetsVariable, dir)
	if code, stdout, stderr := runCommand(t); code != 0 || stdout != dir+"\n" {
		t.Errorf("run = %d, %q, %q", code, stdout, stderr)
	}
	for _, from := range []string{fromCache, fromSource} {
		code, _, stderr := runCommand(t, "-from", from)
		if code != exitFailure || !strings.Contains(stderr, "XDG_CACHE_HOME") {
			t.Errorf("-from %s = %d, %q", from, code, stderr)
		}
	}
}

func TestRunFromAnEmptyCache(t *testing.T) {
	t.Setenv(assetsVariable, t.TempDir()) // An explicit -from goes before it.
	code, stdout, stderr := runCommand(t, "-from", "cache", "-cache-dir", t.TempDir())
	if code != exitFailure || stdout != "" || !strings.Contains(stderr, "no source has etcd, kube-apiserver") {
		t.Errorf("run = %d, %q, %q", code, stdout, stderr)
	}
}

func TestRunUsage(t *testing.T) {
	if code, stdout, stderr := runCommand(t, "-h"); code != 0 || stdout != "" || !strings.Contains(stderr, "-from source") {
		t.Errorf("-h = %d, %q, %q", code, stdout, stderr)
	}
	for _, args := range [][]string{{"-from", "moon"}, {"-with", "kubelet"}, {"extra"}, {"-nonsense"}} {
		code, stdout, stderr := runCommand(t, args...)
		if code != exitUsage || stdout != "" || stderr == "" {
			t.Errorf("%q = %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

func TestParseOptions(t *testing.T) {
	opts, err := parseOptions([]string{"-with", "kubectl,kubectl", "-with", "kubectl"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{etcd, apiServer, kubectl}; !slices.Equal(opts.need(), want) {
		t.Errorf("need = %q, want %q", opts.need(), want)
	}
	if _, err := parseOptions([]string{"-help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-help = %v", err)
	}
}

func TestPrintVersions(t *testing.T) {
	code, stdout, _ := runCommand(t, "-print-versions")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) != 2 || !strings.HasPrefix(lines[0], "kubernetes v1.") || !strings.HasPrefix(lines[1], "etcd v3.") {
		t.Errorf("run = %d, %q", code, stdout)
	}
}

func TestReadPins(t *testing.T) {
	got, err := readPins([]byte("module m\nrequire go.etcd.io/etcd/server/v3 v3.7.0\nrequire (\n\tk8s.io/kubernetes v1.37.2 // indirect\n)\n" +
		"replace k8s.io/api => k8s.io/api v0.37.2\n"))
	if want := (pins{kubernetes: "v1.37.2", etcd: "v3.7.0", minor: "1.37"}); got != want || err != nil {
		t.Errorf("readPins = %+v, %v, want %+v", got, err, want)
	}
	for _, mod := range []string{"module m\n", "require k8s.io/kubernetes v1.37.2\n"} {
		if _, err := readPins([]byte(mod)); err == nil {
			t.Errorf("readPins(%q) succeeded", mod)
		}
	}
}

// Each Kubernetes module must have the version that belongs to the API server's, or the
// build is of a mixture that nobody has tested.
func TestStagingModulesMatchKubernetes(t *testing.T) {
	p, err := readPins(goMod)
	if err != nil {
		t.Fatal(err)
	}
	want := "v0." + strings.TrimPrefix(p.kubernetes, "v1.")
	replaced := 0
	for line := range strings.Lines(string(goMod)) {
		path, version, found := strings.Cut(strings.TrimSpace(line), " => ")
		if !found {
			continue
		}
		replaced++
		if version != path+" "+want {
			t.Errorf("%s is replaced by %q, want version %s", path, version, want)
		}
	}
	if replaced == 0 {
		t.Error("go.mod replaces nothing")
	}
}

func TestEntryNames(t *testing.T) {
	a := pins{kubernetes: "v1.37.2", etcd: "v3.7.0", minor: "1.37"}
	b := pins{kubernetes: "v1.38.0", etcd: "v3.7.0", minor: "1.38"}
	if a.sourceEntry() == b.sourceEntry() || a.archiveEntry() == b.archiveEntry() {
		t.Error("two versions share an entry")
	}
	if !strings.HasPrefix(a.sourceEntry(), "v1.37.2-v3.7.0-") {
		t.Errorf("sourceEntry = %q", a.sourceEntry())
	}
}

func TestProbe(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index.yaml" {
			http.NotFound(w, r)
		}
	}))
	if err := probe(t.Context(), server.URL+"/index.yaml"); err != nil {
		t.Error(err)
	}
	if err := probe(t.Context(), server.URL+"/other"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("probe of a missing index = %v", err)
	}
	server.Close()
	if err := probe(t.Context(), server.URL+"/index.yaml"); err == nil || strings.Contains(err.Error(), "index.yaml") {
		t.Errorf("probe of a closed port = %v, want an error with the host alone", err)
	}
}

func TestArchiveSourceThatDoesNotAnswerIsUnavailable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	a := &archiveSource{index: server.URL}
	if _, err := a.find(t.Context(), bothPrograms); !errors.Is(err, errUnavailable) {
		t.Errorf("find = %v, want errUnavailable", err)
	}
}

func TestCheckVersion(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		etcd:      "#!/bin/sh\necho etcd Version: 3.7.0\n",
		apiServer: "#!/bin/sh\necho Kubernetes v0.0.0-master\n",
		kubectl:   "#!/bin/sh\necho cannot >&2\nexit 3\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkVersion(t.Context(), dir, etcd, "3.7.0"); err != nil {
		t.Error(err)
	}
	if err := checkVersion(t.Context(), dir, apiServer, "1.37.2"); err == nil || !strings.Contains(err.Error(), "v0.0.0-master") {
		t.Errorf("a wrong version = %v", err)
	}
	if err := checkVersion(t.Context(), dir, kubectl, "1.37.2"); err == nil || !strings.Contains(err.Error(), "cannot") {
		t.Errorf("a program that fails = %v", err)
	}
}

func TestMeter(t *testing.T) {
	m := &meter{}
	steps := []struct {
		line     string
		progress bool
		status   string
	}{
		{"go: downloading k8s.io/api v0.37.2", true, "downloading module 1: k8s.io/api"},
		{"go: k8s.io/api@v0.37.2: no such host", false, "downloading module 1: k8s.io/api"},
	}
	for _, s := range steps {
		if got := m.observe(s.line); got != s.progress || m.status() != s.status {
			t.Errorf("observe(%q) = %v, %q, want %v, %q", s.line, got, m.status(), s.progress, s.status)
		}
	}
	m.expect(1500, []string{"cmd/main"})
	if !m.observe("k8s.io/api/core/v1") || !strings.Contains(m.status(), "compiling 1 of 1500: k8s.io/api/core/v1") {
		t.Errorf("status = %q", m.status())
	}
	if m.observe("# k8s.io/api/core/v1") || m.observe("") {
		t.Error("an error line counts as progress")
	}
	if m.observe("cmd/main"); m.status() != "linking" {
		t.Errorf("status = %q, want linking", m.status())
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	log := &progress{out: &out}
	log.note("one\ntwo")
	log.draw(61*time.Second, "linking")
	log.draw(0, "")
	if got, want := out.String(), "controlplane: one\ncontrolplane: 1m1s linking\n"; got != want {
		t.Errorf("a log has %q, want %q", got, want)
	}

	out.Reset()
	terminal := &progress{out: &out, terminal: true}
	terminal.draw(time.Second, strings.Repeat("x", 200))
	if got := strings.TrimPrefix(out.String(), "\r\x1b[K"); len(got) != terminalWidth {
		t.Errorf("a terminal's line has %d columns: %q", len(got), got)
	}
}

func TestLineWriter(t *testing.T) {
	var got []string
	w := &lineWriter{line: func(s string) { got = append(got, s) }}
	for _, part := range []string{"a\nb", "c\r\n", "\nd"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	w.flush()
	w.flush()
	if want := []string{"a", "bc", "", "d"}; !slices.Equal(got, want) {
		t.Errorf("lines = %q, want %q", got, want)
	}
}

func TestGoCommandErrorHasTheReason(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := goCommand(t.Context(), dir, (&meter{}).observe, "list", "-m")
	if err == nil || !strings.Contains(err.Error(), "unknown directive: nonsense") {
		t.Errorf("goCommand = %v", err)
	}
}
