// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// program is an operator in a process of its own, which can be killed.
type program struct {
	binary, kubeconfig string
	cmd                *exec.Cmd
}

// buildProgram compiles the operator and takes the place of the one in this process until the test is over.
func buildProgram() *program {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	p := &program{binary: filepath.Join(dir, "manager"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	build := exec.Command("go", "build", "-o", p.binary, "./cmd/manager")
	build.Dir = root
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	user, err := controlPlane.ServiceAccount(systemNamespace, serviceAccount)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(p.kubeconfig, user.Kubeconfig, 0o600)).To(Succeed())
	operator.stop()
	DeferCleanup(func() {
		p.kill()
		operator = startOperator()
	})
	return p
}

// start runs it without leader election: a lease of one that was killed is held for a while.
func (p *program) start() {
	GinkgoHelper()
	p.cmd = exec.Command(p.binary, "--kubeconfig="+p.kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--log-format=text")
	p.cmd.Stderr = GinkgoWriter
	Expect(p.cmd.Start()).To(Succeed())
}

// kill ends it in the middle of whatever it does.
func (p *program) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// churned are the rings of these tests, in all ways in which backends come: two static ones, one of them trimmed, and one of a
// Service.
type churned struct {
	static, trimmed, sourced *v1alpha1.HashRing
	endpoints                *endpoints
}

func newChurned(ctx context.Context) *churned {
	GinkgoHelper()
	namespace := newNamespace(ctx)
	c := &churned{
		static: newRing(namespace, "static", 20), trimmed: newRing(namespace, "trimmed", 20), sourced: newSourced(namespace, "sourced"),
		endpoints: newEndpoints(ctx, namespace, "sourced", 20),
	}
	c.trimmed.Spec.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV3, PointsPerWeight: 40}
	c.sourced.Spec.Membership = v1alpha1.Membership{MaxRemoved: "100%", LeaveDelay: &metav1.Duration{}}
	for _, r := range c.all() {
		Expect(admin.Create(ctx, r)).To(Succeed())
	}
	return c
}

func (c *churned) all() []*v1alpha1.HashRing {
	return []*v1alpha1.HashRing{c.static, c.trimmed, c.sourced}
}

// set gives every ring n backends.
func (c *churned) set(ctx context.Context, n int) {
	GinkgoHelper()
	for _, r := range []*v1alpha1.HashRing{c.static, c.trimmed} {
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(n) })
	}
	c.endpoints.lose(ctx, 20-n)
}

// expectReadable checks what a reader needs: a routing file of a generation that does not go back, and a slot that has either what
// it names, or what is about to be named.
func (c *churned) expectReadable(ctx context.Context, generations map[string]int64) {
	GinkgoHelper()
	for _, r := range c.all() {
		file := routingOf(ctx, r)
		Expect(file.Generation).To(BeNumerically(">=", generations[r.Name]), "%s goes back", r.Name)
		generations[r.Name] = file.Generation
		_, err := plan.OpenSnapshot(files(ctx, r)[routing.SlotA.FileName()])
		Expect(err).NotTo(HaveOccurred(), r.Name)
	}
}

// expectFinal checks that every ring is what it would be had nothing happened: with 14 backends.
func (c *churned) expectFinal(ctx context.Context) {
	GinkgoHelper()
	for _, r := range c.all() {
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		Eventually(func() []string { return backendsOn(ctx, r) }).Should(HaveLen(14), r.Name)
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		if r != c.sourced {
			checkPublication(ctx, got)
			continue
		}
		spec := *got.Spec.DeepCopy()
		spec.BackendsFrom = nil
		for _, p := range c.endpoints.pods[6:] {
			port, weight := int32(8080), int32(1)
			spec.Backends = append(spec.Backends, v1alpha1.Backend{Name: p.name, Address: p.address, Port: &port, Weight: &weight, Zone: "a"})
		}
		want, err := plan.Build(spec)
		Expect(err).NotTo(HaveOccurred())
		Expect(files(ctx, r)[routing.SlotA.FileName()]).To(Equal(want.Ring.Snapshot()), "the bytes are not those of an undisturbed run")
		Expect(routingOf(ctx, r).Addresses).To(Equal(want.Addresses))
	}
}

var _ = Describe("the operator as a program", Serial, func() {
	It("ends with the bytes of an undisturbed run after being killed 50 times", func(ctx SpecContext) {
		p := buildProgram()
		p.start()
		c := newChurned(ctx)
		for _, r := range c.all() {
			settled(ctx, r, v1alpha1.ReasonRingPublished)
		}
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		generations := map[string]int64{}
		for kill := range 50 {
			// Most of these moments are within the writes that follow the start.
			c.set(ctx, 10+kill%10)
			time.Sleep(time.Duration(random.IntN(1200)) * time.Millisecond) //nolint:forbidigo // The moment is what is tested, and nothing tells it.
			p.kill()
			c.expectReadable(ctx, generations)
			p.start()
		}
		c.set(ctx, 14)
		c.expectFinal(ctx)
	})

	It("publishes nothing, and loses nothing, while the API server does not answer for a minute", func(ctx SpecContext) {
		p := buildProgram()
		p.start()
		c := newChurned(ctx)
		c.set(ctx, 14)
		c.expectFinal(ctx)
		before := map[string]string{}
		for _, r := range c.all() {
			for part, cm := range published(ctx, r) {
				before[r.Name+part] = cm.ResourceVersion
			}
		}
		server := apiServer()
		Expect(server.Signal(syscall.SIGSTOP)).To(Succeed())
		resumed := false
		resume := func() {
			if !resumed {
				resumed = true
				Expect(server.Signal(syscall.SIGCONT)).To(Succeed())
			}
		}
		DeferCleanup(resume)
		time.Sleep(time.Minute) //nolint:forbidigo // It is what is asked for.
		resume()
		edit(ctx, c.static, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(15) })
		Eventually(func() []string { return backendsOn(ctx, c.static) }, "60s").Should(HaveLen(15), "the operator does not go on")
		for _, r := range []*v1alpha1.HashRing{c.trimmed, c.sourced} {
			for part, cm := range published(ctx, r) {
				Expect(cm.ResourceVersion).To(Equal(before[r.Name+part]), "%s-%s was written", r.Name, part)
			}
		}
	})
})

// apiServer finds the process of the API server by the port that it serves.
func apiServer() *os.Process {
	GinkgoHelper()
	address, err := url.Parse(controlPlane.Config().Host)
	if err != nil || address.Port() == "" {
		address = &url.URL{Host: controlPlane.Config().Host}
	}
	flag := fmt.Sprintf("--secure-port=%s", address.Port())
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	Expect(err).NotTo(HaveOccurred())
	for _, path := range commands {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), flag) {
			continue
		}
		var pid int
		_, err = fmt.Sscanf(path, "/proc/%d/cmdline", &pid)
		Expect(err).NotTo(HaveOccurred())
		process, err := os.FindProcess(pid)
		Expect(err).NotTo(HaveOccurred())
		return process
	}
	Fail("no process has " + flag)
	return nil
}
