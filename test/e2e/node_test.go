// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// node runs the program of hack/node and returns what it prints.
func node(arguments ...string) string {
	GinkgoHelper()
	return run(filepath.Join(root, "hack", "node"), nil, "go", append([]string{"run", "."}, arguments...)...)
}

// run runs a program in a directory and returns what it prints.
func run(dir string, environment []string, program string, arguments ...string) string {
	GinkgoHelper()
	command := exec.Command(program, arguments...)
	command.Dir, command.Stderr, command.Env = dir, GinkgoWriter, append(os.Environ(), environment...)
	out, err := command.Output()
	Expect(err).NotTo(HaveOccurred(), "%v", command.Args)
	return strings.TrimSpace(string(out))
}

// startNode starts a node of its own, or takes the one that runs where E2E_KEEP is 1, which is also left running.
func startNode() {
	GinkgoHelper()
	keep := os.Getenv("E2E_KEEP") == "1"
	if !keep {
		node("down")
		DeferCleanup(func() { node("down") })
	}
	node("up", "-sync-frequency", syncFrequency())
	Expect(os.Setenv("KUBECONFIG", node("kubeconfig"))).To(Succeed())
}

// loadImages builds what runs in pods, and gives it to the node.
func loadImages(dir string) {
	GinkgoHelper()
	build := func(version string, packages ...string) []string {
		out := filepath.Join(dir, version)
		arguments := []string{"build", "-trimpath", "-ldflags", "-s -w -X main.version=" + version, "-o", out + "/"}
		run(root, []string{"CGO_ENABLED=0"}, "go", append(arguments, packages...)...)
		programs := make([]string, 0, len(packages))
		for _, p := range packages {
			programs = append(programs, filepath.Join(out, filepath.Base(p)))
		}
		return programs
	}
	ours := []string{"./cmd/manager", "./cmd/agent", "./cmd/balancer"}
	for tag, programs := range map[string][]string{
		image: build("v0.0.1-e2e", ours...), nextImage: build("v0.0.2-e2e", ours...), appImage: build("app", "./test/e2e/app"),
	} {
		archive := filepath.Join(dir, strings.ReplaceAll(filepath.Base(tag), ":", "-")+".tar")
		node(append([]string{"image", "-tag", tag, "-o", archive}, programs...)...)
		node("load", archive)
	}
}
