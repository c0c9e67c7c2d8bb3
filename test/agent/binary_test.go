// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/agentapi"
)

// maxResident is what an agent may keep in memory with a snapshot of 1 MiB.
const maxResident = 30 << 20

var _ = Describe("the program", func() {
	It("follows a ring of 1 MiB with --source=api, and stays small", func(ctx SpecContext) {
		binary := filepath.Join(GinkgoT().TempDir(), "agent")
		build := exec.Command("go", "build", "-trimpath", "-o", binary, filepath.Join(root, "cmd", "agent"))
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // As it is shipped.
		output, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))

		s := newSite(ctx)
		kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(os.WriteFile(kubeconfig, s.kubeconfig, 0o600)).To(Succeed())
		var log bytes.Buffer
		agent := exec.Command(binary, "--source=api", "--hashring="+s.namespace+"/"+ringName, "--kubeconfig="+kubeconfig, "--dir="+s.dir, "--listen=127.0.0.1:0")
		stderr, err := agent.StderrPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(agent.Start()).To(Succeed())
		DeferCleanup(func() {
			_ = agent.Process.Signal(syscall.SIGTERM)
			Expect(agent.Wait()).To(Succeed(), "%s", &log)
		})
		lines := bufio.NewScanner(stderr)
		address := ""
		for address == "" && lines.Scan() {
			var line struct{ Msg, Address string }
			log.WriteString(lines.Text() + "\n")
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				address = line.Address
			}
		}
		Expect(address).NotTo(BeEmpty(), "%s", &log)
		go func() {
			for lines.Scan() { // It would wait for somebody who reads.
			}
		}()

		// Sizes that fill a ConfigMap: 1,700 backends with 160 points each.
		for weight := int32(1); weight <= 3; weight++ {
			s.edit(ctx, func(spec *v1alpha1.HashRingSpec) {
				spec.Publication.Encoding, spec.Backends = v1alpha1.EncodingPoints, backends(1700)
				spec.Backends[0].Weight = ptr.To(weight)
			})
			Expect(admin.Get(ctx, keyOf(s.ring), s.ring)).To(Succeed())
			Eventually(func(g Gomega) {
				response, err := http.Get("http://" + address + agentapi.StatusPath)
				g.Expect(err).NotTo(HaveOccurred())
				defer response.Body.Close()
				var status agentapi.Status
				g.Expect(json.NewDecoder(response.Body).Decode(&status)).To(Succeed())
				g.Expect(status.Warnings).To(BeEmpty())
				g.Expect(status.Routing).NotTo(BeNil())
				g.Expect(status.Stable.Points).To(BeNumerically("==", 160*(1699+int(weight))))
			}).Should(Succeed())
		}
		info, err := os.Stat(filepath.Join(s.dir, "ring-a.snap"))
		Expect(err).NotTo(HaveOccurred())
		resident := residentBytes(agent.Process.Pid)
		GinkgoWriter.Printf("snapshot of %d bytes, resident memory of %.1f MiB\n", info.Size(), float64(resident)/(1<<20))
		Expect(info.Size()).To(BeNumerically(">", 900_000))
		Expect(resident).To(BeNumerically("<=", maxResident))
	})
})

func residentBytes(pid int) int64 {
	GinkgoHelper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		Skip("resident memory is read from /proc")
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return kib << 10
}
