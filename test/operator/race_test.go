// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/pkg/routing"
)

var _ = Describe("two writers", func() {
	DescribeTable("lose nothing when two operators race", func(ctx SpecContext, version v1alpha1.AlgorithmVersion) {
		second := startManager(manager.Options{Concurrency: 2}) // Without leader election: a split brain.
		defer second.stop()
		r := newRing(newNamespace(ctx), "raced", 3)
		r.Spec.Algorithm.Version = version
		history := watchRouting(ctx, r)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished) // So that there are two publications at the least.
		last := 0
		for range 25 {
			last = 4 + rand.IntN(30)
			edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(last) })
		}
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Backends.Total).To(Equal(int32(last)))
		Eventually(func(g Gomega) { // Both are done when neither finds anything to write.
			g.Expect(reconcileOnce(ctx, r, nil).writes).To(BeEmpty())
		}).Should(Succeed())
		checkPublication(ctx, settled(ctx, r, v1alpha1.ReasonRingPublished))
		history()
	},
		Entry("over V2", v1alpha1.AlgorithmV2),
		Entry("over V3, where the one before decides too", v1alpha1.AlgorithmV3),
	)
})

var _ = Describe("leaders", func() {
	It("are numbered in what they write, and write nothing for that alone", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "led", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		first := routingFile(ctx, r)
		Expect(first.LeaderEpoch).To(BeNumerically(">=", 1))
		Expect(first.Stable.Revision).To(Equal(int64(1)))
		Expect(got.Status.Routing.LeaderEpoch).To(Equal(first.LeaderEpoch))
		before := getConfigMap(ctx, r.Namespace, "led-routing").ResourceVersion
		restartOperator()
		Eventually(func(g Gomega) { g.Expect(reconcileOnce(ctx, r, nil).writes).To(BeEmpty()) }).Should(Succeed())
		Expect(getConfigMap(ctx, r.Namespace, "led-routing").ResourceVersion).To(Equal(before))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(4) })
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		second := routingFile(ctx, r)
		Expect(second.LeaderEpoch).To(BeNumerically(">", first.LeaderEpoch))
		Expect(second.Generation).To(Equal(first.Generation + 1))
	})
})

// routingFile returns what is published.
func routingFile(ctx context.Context, r *v1alpha1.HashRing) routing.File {
	GinkgoHelper()
	file, err := routing.Parse([]byte(getConfigMap(ctx, r.Namespace, r.Name+"-routing").Data[routing.FileName]))
	Expect(err).NotTo(HaveOccurred())
	return file
}

// watchRouting watches the routing file of r; the function that it returns checks what was seen: generations never go
// back, and one generation has one content.
func watchRouting(ctx context.Context, r *v1alpha1.HashRing) func() {
	GinkgoHelper()
	watcher, err := admin.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(r.Namespace))
	Expect(err).NotTo(HaveOccurred())
	seen := make(chan []watch.Event, 1)
	go func() {
		var events []watch.Event
		for event := range watcher.ResultChan() {
			events = append(events, event)
		}
		seen <- events
	}()
	return func() {
		GinkgoHelper()
		watcher.Stop()
		contents, last := map[int64]string{}, int64(0)
		for _, event := range <-seen {
			cm, ok := event.Object.(*corev1.ConfigMap)
			if !ok || event.Type == watch.Deleted || cm.Name != r.Name+"-routing" || cm.Data[routing.FileName] == "" {
				continue
			}
			file, err := routing.Parse([]byte(cm.Data[routing.FileName]))
			Expect(err).NotTo(HaveOccurred())
			Expect(file.Generation).To(BeNumerically(">=", last))
			last = file.Generation
			if known, ok := contents[last]; ok {
				Expect(cm.Data[routing.FileName]).To(Equal(known), "generation %d has two contents", last)
			}
			contents[last] = cm.Data[routing.FileName]
		}
		Expect(len(contents)).To(BeNumerically(">", 1))
	}
}

var _ = Describe("a crash", func() {
	It("between any two writes of a publication is made good by the next run", func(ctx SpecContext) {
		operator.stop() // Its turn is over for this test: the reconciles here are made by hand.
		defer func() {
			operator = startOperator()
		}()
		namespace := newNamespace(ctx)
		for survives := range 9 {
			By(fmt.Sprintf("after %d writes of the first publication", survives))
			r := newRing(namespace, fmt.Sprintf("crash-%d", survives), 4)
			Expect(admin.Create(ctx, r)).To(Succeed())
			crashed := reconcileOnce(ctx, r, killedAfter(survives))
			if len(crashed.writes) <= survives {
				Expect(crashed.err).NotTo(HaveOccurred(), "%d writes are all there are", survives)
			} else {
				Expect(crashed.err).To(MatchError(ContainSubstring("killed")))
			}
			reconcileUntilQuiet(ctx, r)
			got := settled(ctx, r, v1alpha1.ReasonRingPublished)
			Expect(got.Status.Active.Revision).To(Equal(int64(1)))
			Expect(got.Status.Routing.Generation).To(Equal(int64(1)))
			checkPublication(ctx, got)

			By(fmt.Sprintf("after %d writes of the second", survives))
			edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(5) })
			reconcileOnce(ctx, r, killedAfter(survives))
			reconcileUntilQuiet(ctx, r)
			got = settled(ctx, r, v1alpha1.ReasonRingPublished)
			Expect(got.Status.Active.Revision).To(Equal(int64(2)))
			Expect(got.Status.Routing.Generation).To(Equal(int64(2)))
			checkPublication(ctx, got)
		}
	})
})

// killedAfter lets so many writes through, and no more.
func killedAfter(survives int) func(n int) error {
	return func(n int) error {
		if n > survives {
			return errors.New("killed")
		}
		return nil
	}
}

// reconcileUntilQuiet reconciles by hand until there is nothing to write.
func reconcileUntilQuiet(ctx context.Context, r *v1alpha1.HashRing) {
	GinkgoHelper()
	for range 10 {
		counted := reconcileOnce(ctx, r, nil)
		Expect(counted.err).NotTo(HaveOccurred())
		if len(counted.writes) == 0 {
			return
		}
	}
	Fail("still writing after ten runs: " + strings.Join(reconcileOnce(ctx, r, nil).writes, ", "))
}
