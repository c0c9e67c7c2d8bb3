// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// usage is what a pod's cgroup says: memory now, and processor time since the beginning.
type usage struct {
	memory     uint64
	cpuSeconds float64
}

// operatorUsage asks the kubelet for the usage of the operator's pods.
func operatorUsage(ctx context.Context) map[string]usage {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	set, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	nodes := &corev1.NodeList{}
	Expect(admin.List(ctx, nodes)).To(Succeed())
	Expect(nodes.Items).To(HaveLen(1))
	text, err := set.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", nodes.Items[0].Name, "proxy/stats/summary").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	var summary struct {
		Pods []struct {
			PodRef struct{ Name, Namespace string }
			CPU    struct{ UsageCoreNanoSeconds uint64 }
			Memory struct{ WorkingSetBytes uint64 }
		}
	}
	Expect(json.Unmarshal(text, &summary)).To(Succeed())
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, operatorLabels)).To(Succeed())
	found := map[string]usage{}
	for _, p := range pods.Items {
		for _, s := range summary.Pods {
			if s.PodRef.Namespace == p.Namespace && s.PodRef.Name == p.Name && s.Memory.WorkingSetBytes > 0 {
				found[p.Name] = usage{s.Memory.WorkingSetBytes, float64(s.CPU.UsageCoreNanoSeconds) / 1e9}
			}
		}
	}
	Expect(found).NotTo(BeEmpty(), "the kubelet says nothing of the operator")
	return found
}

var _ = Describe("what the operator takes", func() {
	// measure returns what the operator takes in the time that something runs: the most memory of a pod, and processors of all of them.
	measure := func(ctx context.Context, run func()) (mebibytes, processors float64) {
		before, started := operatorUsage(ctx), time.Now()
		run()
		after, took := operatorUsage(ctx), time.Since(started).Seconds()
		for name, u := range after {
			mebibytes = max(mebibytes, float64(u.memory)/(1<<20))
			processors += (u.cpuSeconds - before[name].cpuSeconds) / took
		}
		return mebibytes, processors
	}

	It("is little at rest and under churn", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		memory, processors := measure(ctx, func() { Eventually(time.After(30*time.Second), time.Minute).Should(Receive()) })
		AddReportEntry("at rest", fmt.Sprintf("%.1f MiB a pod, %.4f processors", memory, processors))
		Expect(memory).To(BeNumerically("<", 128))
		memory, processors = measure(ctx, func() {
			for i := range 8 {
				w.scale(ctx, 4+i%2)
				w.waitBackends(ctx, 4+i%2)
				w.waitReady(ctx, 4+i%2)
			}
		})
		AddReportEntry("under churn", fmt.Sprintf("%.1f MiB a pod, %.4f processors", memory, processors))
		Expect(memory).To(BeNumerically("<", 256))
		w.scale(ctx, 4)
		w.waitReady(ctx, 4)
		w.holds(ctx)
	})
})
