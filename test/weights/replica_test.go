// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"net/http"
	"os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

// replica is a balancer that runs as a process.
type replica struct {
	name                         string
	listen, http, probe, metrics string
	session                      *gexec.Session
}

// startReplica starts a balancer and waits until it is ready. It is killed at the end of the spec, if it runs then.
func startReplica(name string, arguments ...string) *replica {
	GinkgoHelper()
	r := &replica{name: name, listen: freeAddress(), http: freeAddress(), probe: freeAddress(), metrics: freeAddress()}
	r.start(arguments...)
	DeferCleanup(func() { r.kill() })
	return r
}

// start starts the process, at the addresses of its earlier life.
func (r *replica) start(arguments ...string) {
	GinkgoHelper()
	command := exec.Command(program, append([]string{
		"--kubeconfig", kubeconfig, "--name", r.name, "--namespace", systemNamespace, "--listen", r.listen, "--http-listen", r.http,
		"--token-file", token, "--health-probe-bind-address", r.probe, "--metrics-bind-address", r.metrics, "--metrics-insecure",
		"--log-format", "text", "--anonymous-lrs",
	}, arguments...)...)
	var err error
	r.session, err = gexec.Start(command, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Eventually(r.ready).Should(BeTrue(), "the replica is not ready")
}

func (r *replica) ready() bool {
	client := http.Client{Timeout: time.Second}
	response, err := client.Get("http://" + r.probe + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// kill ends the process at once.
func (r *replica) kill() { r.session.Kill().Wait(10 * time.Second) }

// stop ends it as a signal of Kubernetes would.
func (r *replica) stop() {
	GinkgoHelper()
	r.session.Terminate().Wait(30 * time.Second)
	Expect(r.session.ExitCode()).To(BeZero())
}
