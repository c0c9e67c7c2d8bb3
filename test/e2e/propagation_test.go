// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/pkg/routing"
)

// publications are how many are measured.
const publications = 8

// What a snapshot takes from the API server to the agents is a matter of the kubelet: make propagation measures it with its default of a minute.
var _ = Describe("from published to applied", Label("propagation"), func() {
	It("takes what the kubelet takes", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		took := w.propagation(ctx)
		AddReportEntry("published to applied, kubelet with "+syncFrequency(), fmt.Sprint(took))
	})
})

// propagation publishes some rings, and returns how long each took to be used by the slowest consumer, ascending.
func (w *world) propagation(ctx context.Context) []time.Duration {
	GinkgoHelper()
	watch, err := admin.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(w.namespace))
	Expect(err).NotTo(HaveOccurred())
	defer watch.Stop()
	var took []time.Duration
	for i := range publications {
		before := w.generation(ctx)
		w.scale(ctx, 4+(i+1)%2)
		published := time.Time{}
		generation := before
		for generation == before {
			event, open := <-watch.ResultChan()
			Expect(open).To(BeTrue())
			if cm, is := event.Object.(*corev1.ConfigMap); is && cm.Name == "edge-routing" {
				file, err := routing.Parse([]byte(cm.Data[routing.FileName]))
				Expect(err).NotTo(HaveOccurred())
				generation, published = file.Generation, time.Now()
			}
		}
		Eventually(func(g Gomega) {
			for _, pod := range w.consumers(ctx) {
				var s struct{ Generation int64 }
				g.Expect(get(ctx, "http://"+pod.Status.PodIP+":9465/v1/status", &s)).To(Succeed())
				g.Expect(s.Generation).To(BeNumerically(">=", generation))
			}
		}, 3*time.Minute, 50*time.Millisecond).Should(Succeed())
		took = append(took, time.Since(published).Round(10*time.Millisecond))
		w.waitReady(ctx, 4+(i+1)%2)
	}
	slices.Sort(took)
	return took
}

// generation is that of what is published.
func (w *world) generation(ctx context.Context) int64 {
	GinkgoHelper()
	state, end, err := w.load(ctx, "")
	Expect(err).NotTo(HaveOccurred())
	defer end()
	return state.Generation()
}

// syncFrequency is that of the kubelet. Its default is a minute, which would make of every scenario a matter of many; with E2E_SYNC it is another.
func syncFrequency() string {
	if set := os.Getenv("E2E_SYNC"); set != "" {
		return set
	}
	return "5s"
}
