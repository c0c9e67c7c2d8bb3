// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // For the files below.
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// The build uses these copies and not the files on disk, so that what is built is what the directory is named after.
var (
	//go:embed go.mod
	goMod []byte
	//go:embed go.sum
	goSum []byte
	//go:embed pause/main.go
	pauseMain []byte
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	pauseArchive     = "pause.tar"
	// controlPlaneDir has the program that finds or builds the API server, as seen from this module's directory.
	controlPlaneDir = "../controlplane"
)

// kubernetesPrograms are what this module builds of Kubernetes. The API server is hack/controlplane's.
var kubernetesPrograms = []string{"kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet"}

// runBuild finds or builds the programs.
func runBuild(ctx context.Context, l layout, _ []string, stdout io.Writer) error {
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := findControlPlane(ctx); err != nil {
		return err
	}
	dir, err := findPrograms(ctx, l)
	if err != nil {
		return err
	}
	return printLine(stdout, dir)
}

// findControlPlane returns a directory with etcd and kube-apiserver.
func findControlPlane(ctx context.Context) (string, error) {
	if _, err := os.Stat(filepath.Join(controlPlaneDir, "go.mod")); err != nil {
		return "", fmt.Errorf("finding hack/controlplane: %w (run this program with go -C hack/node run .)", err)
	}
	cmd := exec.CommandContext(ctx, "go", "-C", controlPlaneDir, "run", ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("finding the control plane with hack/controlplane: %w", err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// programsDir is where the programs of these sources are.
func programsDir(l layout) string {
	h := sha256.New()
	for _, part := range [][]byte{goMod, goSum, pauseMain, []byte(strings.Join(buildFlags(), "\x00"))} {
		// Framed, so that bytes cannot move between parts. A hash takes all writes.
		_, _ = fmt.Fprintf(h, "%d\n%s", len(part), part)
	}
	digest := hex.EncodeToString(h.Sum(nil))[:12]
	return filepath.Join(l.root, fmt.Sprintf("programs-%s-%s-%s", kubernetesVersion(goMod), runtime.GOARCH, digest))
}

// programsBuilt reports whether an earlier run has left the programs.
func programsBuilt(l layout) bool {
	_, err := os.Stat(programsDir(l))
	return err == nil
}

// findPrograms returns a directory with the programs of a node, after a build if need be. The caller holds the lock.
func findPrograms(ctx context.Context, l layout) (string, error) {
	dir := programsDir(l)
	if programsBuilt(l) {
		return dir, nil
	}
	tmp := filepath.Join(l.root, "building")
	if err := os.RemoveAll(tmp); err != nil { // Of a build that was killed.
		return "", err
	}
	note("building %s of Kubernetes %s: some 20 CPU minutes with an empty build cache, seconds with a full one",
		strings.Join(kubernetesPrograms, ", "), kubernetesVersion(goMod))
	err := buildPrograms(ctx, tmp)
	if err == nil {
		err = os.Rename(filepath.Join(tmp, "programs"), dir) // All of them appear at once.
	}
	return dir, errors.Join(err, os.RemoveAll(tmp))
}

// buildPrograms builds into tmp/programs, in a module of its own with this one's go.mod.
func buildPrograms(ctx context.Context, tmp string) error {
	out := filepath.Join(tmp, "programs")
	for _, dir := range []string{out, filepath.Join(tmp, "module", "pause")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	files := map[string][]byte{"go.mod": goMod, "go.sum": goSum, "pause/main.go": pauseMain}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(tmp, "module", name), data, 0o644); err != nil {
			return err
		}
	}
	args := append([]string{"build", "-o", out}, buildFlags()...)
	for _, name := range kubernetesPrograms {
		args = append(args, kubernetesModule+"/cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./pause")...)
	cmd.Dir = filepath.Join(tmp, "module")
	// Neither a workspace nor flags of the user, nor a C compiler.
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building Kubernetes: %w", err)
	}
	return writeImage(filepath.Join(out, pauseArchive), image{
		tag: pauseImage, user: "65535:65535", programs: []string{filepath.Join(out, "pause")},
	})
}

// kubernetesVersion is the version that the text of a go.mod requires, with its v.
func kubernetesVersion(mod []byte) string {
	for sc := bufio.NewScanner(bytes.NewReader(mod)); sc.Scan(); {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(sc.Text()), "require "))
		if len(fields) >= 2 && fields[0] == kubernetesModule && strings.HasPrefix(fields[1], "v") {
			return fields[1]
		}
	}
	return ""
}

// buildFlags are those of go build. Without the version in the linker flags Kubernetes calls itself v0.0.0.
func buildFlags() []string {
	const variable = "-X k8s.io/component-base/version."
	version := kubernetesVersion(goMod)
	parts := strings.SplitN(strings.TrimPrefix(version, "v")+"..", ".", 3)
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", strings.Join([]string{
		"-s -w",
		variable + "gitVersion=" + version,
		variable + "gitMajor=" + parts[0],
		variable + "gitMinor=" + parts[1],
	}, " ")}
}
