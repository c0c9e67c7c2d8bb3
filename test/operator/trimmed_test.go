// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// newTrimmed returns a V3 ring of n backends, of which five in six have the feature eu.
func newTrimmed(namespace, name string, n int) *v1alpha1.HashRing {
	r := newRing(namespace, name, n)
	r.Spec.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV3, PointsPerWeight: 40}
	r.Spec.Features = []v1alpha1.Feature{{Name: "eu", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"eu": "true"}}}}
	r.Spec.Backends = trimmedBackends(n)
	return r
}

func trimmedBackends(n int) []v1alpha1.Backend {
	list := backends(n)
	for i := range list {
		list[i].Labels = map[string]string{"eu": fmt.Sprint(i%6 != 0)}
	}
	return list
}

func weigh(i int, weight int32) func(*v1alpha1.HashRing) {
	return func(r *v1alpha1.HashRing) { r.Spec.Backends[i].Weight = ptr.To(weight) }
}

// slotRing opens what is published.
func slotRing(ctx context.Context, r *v1alpha1.HashRing) *ring.Ring {
	GinkgoHelper()
	opened, err := ring.Open(getConfigMap(ctx, r.Namespace, r.Name+"-a").BinaryData["ring-a.snap"])
	Expect(err).NotTo(HaveOccurred())
	return opened
}

// moved returns the part of the keys that readers of a set of features find elsewhere.
func moved(from, to *ring.Ring, features ...string) float64 {
	GinkgoHelper()
	a, err := from.View(features...)
	Expect(err).NotTo(HaveOccurred())
	b, err := to.View(features...)
	Expect(err).NotTo(HaveOccurred())
	return float64(ring.Compare(a, b).Total) / ring.KeySpace
}

// restart starts an operator in place of the one that has been stopped.
func restart() {
	GinkgoHelper()
	operator = startOperator()
}

var _ = Describe("a trimmed ring", func() {
	It("is within its limit in every view, and the status says what it is", func(ctx SpecContext) {
		r := newTrimmed(newNamespace(ctx), "limited", 60)
		r.Spec.Algorithm.MaxImbalance = "0.5%"
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		checkPublication(ctx, got)
		Expect(got.Status.Active.Algorithm).To(Equal(v1alpha1.ActiveAlgorithm{
			Version: v1alpha1.AlgorithmV3, PointsPerWeight: 40, WeightUnit: 1, MaxImbalance: "0.5%",
		}))
		opened := slotRing(ctx, r)
		worst := 0.0
		for _, features := range [][]string{nil, {"eu"}} {
			v, err := opened.View(features...)
			Expect(err).NotTo(HaveOccurred())
			worst = max(worst, v.Stats().MaxOverAverage)
		}
		Expect(worst).To(BeNumerically("<=", 1.005))
		Expect(got.Status.Balance.WorstView.MaxOverAverage).To(Equal(fmt.Sprintf("%.3f", worst)))
		Expect(got.Status.Warnings).To(BeEmpty())
	})

	It("is published where its limit is out of reach, and says so", func(ctx SpecContext) {
		r := newTrimmed(newNamespace(ctx), "unreachable", 7)
		r.Spec.Algorithm.PointsPerWeight, r.Spec.Algorithm.MaxImbalance = 4, "0.0001%"
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		checkPublication(ctx, got)
		Expect(got.Status.Warnings).To(ContainElement(And(
			HaveField("Reason", v1alpha1.WarningImbalanceOverLimit),
			HaveField("Message", And(ContainSubstring("in view eu the busiest of 5 backends stays "), ContainSubstring("maxImbalance 0.0001%"))))))
	})

	It("moves about what it must when a backend joins or a weight changes", func(ctx SpecContext) {
		r := newTrimmed(newNamespace(ctx), "sticky", 100)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		for name, change := range map[string]func(*v1alpha1.HashRing){
			"a backend joins": func(r *v1alpha1.HashRing) {
				r.Spec.Backends = append(r.Spec.Backends, trimmedBackends(len(r.Spec.Backends) + 1)[len(r.Spec.Backends)])
			},
			"a weight is doubled": weigh(7, 2),
		} {
			By(name)
			before := slotRing(ctx, r)
			edit(ctx, r, change)
			got := settled(ctx, r, v1alpha1.ReasonRingPublished)
			checkPublication(ctx, got)
			after := slotRing(ctx, r)
			for _, features := range [][]string{nil, {"eu"}} {
				v, err := after.View(features...)
				Expect(err).NotTo(HaveOccurred())
				ideal := 1 / float64(v.Len())
				Expect(moved(before, after, features...)).To(And(BeNumerically(">", ideal/2), BeNumerically("<", 3*ideal)), "view %v", features)
			}
			fresh, err := plan.Build(got.Spec)
			Expect(err).NotTo(HaveOccurred())
			Expect(fresh.Ring.Snapshot()).NotTo(Equal(after.Snapshot()), "the ring before makes no difference: the test shows nothing")
		}
	})

	It("changes from V2 and back, each by one edit", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "changed", 200)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		v2 := slotRing(ctx, r)
		edit(ctx, r, func(r *v1alpha1.HashRing) {
			r.Spec.Algorithm.Version, r.Spec.Algorithm.MaxImbalance = v1alpha1.AlgorithmV3, "2%"
		})
		checkPublication(ctx, settled(ctx, r, v1alpha1.ReasonRingPublished))
		Expect(moved(v2, slotRing(ctx, r))).To(And(BeNumerically(">", 0), BeNumerically("<", 0.05)))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Algorithm.Version = v1alpha1.AlgorithmV2 })
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		checkPublication(ctx, got)
		Expect(slotRing(ctx, r).Snapshot()).To(Equal(v2.Snapshot()))
		Expect(got.Status.Warnings).To(ConsistOf(And(
			HaveField("Reason", v1alpha1.WarningFieldWithoutEffect), HaveField("Message", ContainSubstring("spec.algorithm.maxImbalance")))))
	})

	It("is not written again after a restart", func(ctx SpecContext) {
		r := newTrimmed(newNamespace(ctx), "restarted", 50)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		edit(ctx, r, weigh(3, 2)) // So that what is trimmed depends on the ring before.
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		operator.stop()
		before := writesOfOperator(r.Namespace)
		restart()
		probe := newRing(r.Namespace, "probe", 2) // Published only after all that was there has been looked at once.
		Expect(admin.Create(ctx, probe)).To(Succeed())
		settled(ctx, probe, v1alpha1.ReasonRingPublished)
		Expect(writesOfOperator(r.Namespace)["restarted"]).To(Equal(before["restarted"]))
	})
})

var _ = Describe("restoration of a trimmed ring", func() {
	// twice returns a ring that has been published twice, so that it is not what its spec alone gives.
	twice := func(ctx context.Context) *v1alpha1.HashRing {
		GinkgoHelper()
		r := newTrimmed(newNamespace(ctx), "trimmed", 50)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		edit(ctx, r, weigh(3, 3))
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		fresh, err := plan.Build(got.Spec)
		Expect(err).NotTo(HaveOccurred())
		Expect(fresh.Ring.Digest()).NotTo(Equal(got.Status.Active.Digest), "the test shows nothing")
		return got
	}

	DescribeTable("gives the same bytes", func(ctx SpecContext, restarted bool, damage func(context.Context, map[string]*corev1.ConfigMap)) {
		r := twice(ctx)
		before := published(ctx, r)
		if restarted {
			operator.stop()
		}
		damage(ctx, published(ctx, r))
		if restarted {
			restart()
		}
		Eventually(func(g Gomega) {
			for part, want := range before {
				got := &corev1.ConfigMap{}
				g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(want), got)).To(Succeed())
				g.Expect(payload(got)).To(Equal(payload(want)), part)
			}
		}).Should(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Active).To(Equal(r.Status.Active))
		checkPublication(ctx, got)
	},
		Entry("when its slot is edited", false, editSlot),
		Entry("when its slot is deleted", false, deleteParts("a")),
		Entry("when all is deleted", false, deleteParts("a", "b", "routing")),
		Entry("when its slot is edited while no operator runs", true, editSlot),
		Entry("when its slot is deleted while no operator runs", true, deleteParts("a")),
		Entry("when all is deleted while no operator runs", true, deleteParts("a", "b", "routing")),
	)

	It("gives the same bytes when the status is lost as well", func(ctx SpecContext) {
		r := twice(ctx)
		before := published(ctx, r)
		operator.stop()
		deleteParts("a", "b", "routing")(ctx, before)
		wiped := &v1alpha1.HashRing{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), wiped)).To(Succeed())
		wiped.Status = v1alpha1.HashRingStatus{}
		Expect(admin.Status().Update(ctx, wiped)).To(Succeed())
		restart()
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Active.Digest).To(Equal(r.Status.Active.Digest))
		Expect(got.Status.Active.Revision).To(Equal(r.Status.Active.Revision))
		checkPublication(ctx, got)
	})

	It("needs the record or the slot, not both", func(ctx SpecContext) {
		r := twice(ctx)
		for name, record := range recordsOf(ctx, r) {
			By(name)
			Expect(admin.Delete(ctx, record)).To(Succeed())
		}
		Eventually(func() any { return recordsOf(ctx, r) }).Should(HaveKey("trimmed-2"))
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Active).To(Equal(r.Status.Active))
		checkPublication(ctx, got)
	})
})

func editSlot(ctx context.Context, cms map[string]*corev1.ConfigMap) {
	GinkgoHelper()
	cms["a"].BinaryData["ring-a.snap"][100] ^= 1
	Expect(admin.Update(ctx, cms["a"], client.FieldOwner("somebody"))).To(Succeed())
}

func deleteParts(parts ...string) func(context.Context, map[string]*corev1.ConfigMap) {
	return func(ctx context.Context, cms map[string]*corev1.ConfigMap) {
		GinkgoHelper()
		for _, part := range parts {
			Expect(admin.Delete(ctx, cms[part])).To(Succeed())
		}
	}
}

var _ = Describe("a crash over a trimmed ring", func() {
	It("between any two writes ends in the bytes of an undisturbed run", func(ctx SpecContext) {
		operator.stop() // Its turn is over for this test: the reconciles here are made by hand.
		defer restart()
		namespace := newNamespace(ctx)
		steps := []func(*v1alpha1.HashRing){weigh(3, 3), weigh(9, 2), weigh(3, 1)}
		undisturbed := newTrimmed(namespace, "undisturbed", 40)
		Expect(admin.Create(ctx, undisturbed)).To(Succeed())
		reconcileUntilQuiet(ctx, undisturbed)
		want := [][]byte{slotRing(ctx, undisturbed).Snapshot()}
		for _, step := range steps {
			edit(ctx, undisturbed, step)
			reconcileUntilQuiet(ctx, undisturbed)
			want = append(want, slotRing(ctx, undisturbed).Snapshot())
		}
		most := 0
		for survives := 0; survives == 0 || survives <= most; survives++ {
			By(fmt.Sprintf("after %d writes", survives))
			r := newTrimmed(namespace, fmt.Sprintf("crash-%d", survives), 40)
			Expect(admin.Create(ctx, r)).To(Succeed())
			for i := range want {
				if i > 0 {
					edit(ctx, r, steps[i-1])
				}
				crashed := reconcileOnce(ctx, r, func(n int) error {
					if n > survives {
						return errors.New("killed")
					}
					return nil
				})
				if len(crashed.writes) > 0 {
					Expect(crashed.writes[0]).To(Equal(fmt.Sprintf("create %s-%d", r.Name, i+1)), "the record comes first")
				}
				most = max(most, min(len(crashed.writes), survives+1))
				reconcileUntilQuiet(ctx, r)
				Expect(slotRing(ctx, r).Snapshot()).To(Equal(want[i]), "step %d", i)
				got := settled(ctx, r, v1alpha1.ReasonRingPublished)
				Expect(got.Status.Active.Revision).To(Equal(int64(i + 1)))
				checkPublication(ctx, got)
			}
		}
		Expect(most).To(BeNumerically(">=", 8), "the record, 3 claims, 3 applies, the status")
	})
})
