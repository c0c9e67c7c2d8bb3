// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed" // For go.mod and go.sum below.
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
)

// The build uses these copies and not the files on disk, so that what is built is
// what the key of the cache names, wherever the command runs.
var (
	//go:embed go.mod
	goMod []byte
	//go:embed go.sum
	goSum []byte
)

// The programs, by the names under which envtest looks for them.
const (
	etcd      = "etcd"
	apiServer = "kube-apiserver"
	kubectl   = "kubectl"
)

// program says how to build one program and how to check the result.
type program struct {
	module      string   // The module whose version the program has.
	pkg         string   // The main package.
	output      string   // The name that go build gives to it.
	versionArgs []string // They make the program print its version.
}

var programs = map[string]program{
	etcd: {
		module: "go.etcd.io/etcd/server/v3", pkg: "go.etcd.io/etcd/server/v3",
		output: "server", versionArgs: []string{"--version"},
	},
	apiServer: {
		module: "k8s.io/kubernetes", pkg: "k8s.io/kubernetes/cmd/kube-apiserver",
		output: apiServer, versionArgs: []string{"--version"},
	},
	kubectl: {
		module: "k8s.io/kubernetes", pkg: "k8s.io/kubernetes/cmd/kubectl",
		output: kubectl, versionArgs: []string{"version", "--client"},
	},
}

// pins are the versions that this module's go.mod requires, with a leading v.
type pins struct {
	kubernetes string
	etcd       string
	minor      string // The Kubernetes minor version, such as 1.37.
}

// readPins finds the versions in the text of a go.mod.
func readPins(mod []byte) (pins, error) {
	p := pins{
		kubernetes: requiredVersion(mod, programs[apiServer].module),
		etcd:       requiredVersion(mod, programs[etcd].module),
	}
	if p.kubernetes == "" || p.etcd == "" {
		return p, fmt.Errorf("go.mod must require %s and %s", programs[apiServer].module, programs[etcd].module)
	}
	parts := strings.SplitN(strings.TrimPrefix(p.kubernetes, "v"), ".", 3)
	if len(parts) != 3 {
		return p, fmt.Errorf("go.mod: %q is not a version of Kubernetes", p.kubernetes)
	}
	p.minor = parts[0] + "." + parts[1]
	return p, nil
}

// requiredVersion returns the version of module in the text of a go.mod, or "".
func requiredVersion(mod []byte, module string) string {
	for sc := bufio.NewScanner(bytes.NewReader(mod)); sc.Scan(); {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(sc.Text()), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1]
		}
	}
	return ""
}

// version returns the version that the named program must report, without the v.
func (p pins) version(name string) string {
	if name == etcd {
		return strings.TrimPrefix(p.etcd, "v")
	}
	return strings.TrimPrefix(p.kubernetes, "v")
}

// sourceEntry names the cache entry of programs built from source. The Go version is
// not part of it: a new Go is no reason to spend minutes on the same sources.
func (p pins) sourceEntry() string {
	h := sha256.New()
	for _, part := range [][]byte{goMod, goSum, []byte(strings.Join(p.buildFlags(), "\x00"))} {
		// Framed, so that bytes cannot move between parts. A hash takes all writes.
		_, _ = fmt.Fprintf(h, "%d\n%s", len(part), part)
	}
	digest := hex.EncodeToString(h.Sum(nil))[:12]
	return fmt.Sprintf("%s-%s-%s-%s-%s", p.kubernetes, p.etcd, runtime.GOOS, runtime.GOARCH, digest)
}

// archiveEntry names the cache entry of programs from published archives.
func (p pins) archiveEntry() string {
	return fmt.Sprintf("v%s-setup-envtest-%s-%s", p.minor, runtime.GOOS, runtime.GOARCH)
}

// buildFlags are the flags of go build. Without the version in the linker flags the
// API server calls itself v0.0.0, and clients that look at the version misbehave.
func (p pins) buildFlags() []string {
	const variable = "-X k8s.io/component-base/version."
	major, minor, _ := strings.Cut(p.minor, ".")
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", strings.Join([]string{
		"-s -w",
		variable + "gitVersion=" + p.kubernetes,
		variable + "gitMajor=" + major,
		variable + "gitMinor=" + minor,
	}, " ")}
}
