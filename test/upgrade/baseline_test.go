// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// unpackBaseline returns a directory with the tree of the baseline. Without that commit, as in a shallow clone or where there is no clone at all,
// the test is skipped, and says so.
func unpackBaseline(root string) string {
	GinkgoHelper()
	if err := exec.Command("git", "-C", root, "cat-file", "-e", baseline+"^{commit}").Run(); err != nil {
		const missing = "NOT TESTED: this clone does not have commit " + baseline + ", so the operator of that commit cannot be built; " +
			"git fetch --unshallow brings it. What that operator wrote once is tested all the same."
		if *record {
			Fail(missing)
		}
		_, _ = os.Stderr.WriteString("\n" + missing + "\n")
		Skip(missing)
	}
	dir := GinkgoT().TempDir()
	archive, err := exec.Command("git", "-C", root, "archive", "--format=tar", baseline).Output()
	Expect(err).NotTo(HaveOccurred())
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(archive)
	Expect(unpack.Run()).To(Succeed())
	return dir
}

// baselineOperator is an operator of the baseline, a process of its own.
type baselineOperator struct {
	cmd  *exec.Cmd
	done chan error
}

// startBaseline builds the operator in a tree and starts it.
func (c *cluster) startBaseline(ctx context.Context, tree string) *baselineOperator {
	GinkgoHelper()
	program := filepath.Join(GinkgoT().TempDir(), "manager")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program,
		"-ldflags=-X main.consumerLoopback=true -X main.migrationInterval="+interval.String(), "./cmd/manager")
	build.Dir, build.Stdout, build.Stderr = tree, GinkgoWriter, GinkgoWriter
	Expect(build.Run()).To(Succeed())
	user, err := c.ServiceAccount(systemNamespace, serviceAccount)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, user.Kubeconfig, 0o600)).To(Succeed())
	o := &baselineOperator{done: make(chan error, 1)}
	o.cmd = exec.Command(program, "--kubeconfig="+kubeconfig, "--leader-elect", "--leader-election-namespace="+systemNamespace,
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
	o.cmd.Stderr = GinkgoWriter
	Expect(o.cmd.Start()).To(Succeed())
	go func() { o.done <- o.cmd.Wait() }()
	DeferCleanup(func() { _ = o.cmd.Process.Kill() })
	return o
}

// stop ends the operator as an upgrade does.
func (o *baselineOperator) stop() {
	GinkgoHelper()
	Expect(o.cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
	Eventually(o.done).WithTimeout(time.Minute).Should(Receive(BeNil()))
}
