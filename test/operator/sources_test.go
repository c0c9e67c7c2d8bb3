// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// endpoints are the pods of a Service as an EndpointSlice controller would show them. There is none here, so the tests write
// slices themselves.
type endpoints struct {
	namespace, service string
	pods               []endpoint
	slices             [2]*discoveryv1.EndpointSlice
}

type endpoint struct {
	name, address      string
	ready, terminating bool
}

// newEndpoints makes a Service with n ready pods.
func newEndpoints(ctx context.Context, namespace, service string, n int) *endpoints {
	GinkgoHelper()
	e := &endpoints{namespace: namespace, service: service}
	for i := range n {
		e.pods = append(e.pods, endpoint{name: fmt.Sprintf("%s-%d", service, i), address: fmt.Sprintf("10.244.0.%d", i+1), ready: true})
	}
	Expect(admin.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	})).To(Succeed())
	e.write(ctx)
	return e
}

// write brings the slices of the Service up to date: pods by turns into two of them.
func (e *endpoints) write(ctx context.Context) {
	GinkgoHelper()
	for k := range e.slices {
		fresh := e.slices[k] == nil
		if fresh {
			e.slices[k] = &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: e.namespace, Name: fmt.Sprintf("%s-%d", e.service, k), Labels: map[string]string{discoveryv1.LabelServiceName: e.service},
				},
				AddressType: discoveryv1.AddressTypeIPv4,
				Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(8080))}},
			}
		}
		e.slices[k].Endpoints = []discoveryv1.Endpoint{}
		for i, p := range e.pods {
			if i%2 == k {
				e.slices[k].Endpoints = append(e.slices[k].Endpoints, p.endpoint(e.namespace))
			}
		}
		if fresh {
			Expect(admin.Create(ctx, e.slices[k])).To(Succeed())
		} else {
			Expect(admin.Update(ctx, e.slices[k])).To(Succeed())
		}
	}
}

func (p endpoint) endpoint(namespace string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{p.address}, Hostname: &p.name, Zone: ptr.To("a"),
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: p.name},
		Conditions: discoveryv1.EndpointConditions{Ready: &p.ready, Serving: &p.ready, Terminating: &p.terminating},
	}
}

// lose takes the first n pods away.
func (e *endpoints) lose(ctx context.Context, n int) {
	GinkgoHelper()
	all := e.pods
	e.pods = all[n:]
	e.write(ctx)
	e.pods = all
}

// newSourced returns a HashRing of the pods of a Service, with the defaults of membership.
func newSourced(namespace, service string) *v1alpha1.HashRing {
	return &v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service},
		Spec: v1alpha1.HashRingSpec{
			Identity:     v1alpha1.IdentityName,
			BackendsFrom: []v1alpha1.BackendSource{{Service: v1alpha1.ServicePort{Name: service}}},
			Publication:  v1alpha1.Publication{MinInterval: &metav1.Duration{}},
		},
	}
}

func routingOf(ctx context.Context, r *v1alpha1.HashRing) routing.File {
	GinkgoHelper()
	file, err := routing.Parse([]byte(getConfigMap(ctx, r.Namespace, plan.RoutingName(r.Name)).Data[routing.FileName]))
	Expect(err).NotTo(HaveOccurred())
	return file
}

// backendsOn returns the identities on the published ring.
func backendsOn(ctx context.Context, r *v1alpha1.HashRing) []string {
	GinkgoHelper()
	config, err := ring.ReadConfig(files(ctx, r)[routing.SlotA.FileName()])
	Expect(err).NotTo(HaveOccurred())
	var ids []string
	for _, b := range config.Backends {
		ids = append(ids, b.ID)
	}
	return ids
}

var _ = Describe("a ring of a Service", func() {
	It("waits for the Service, and is then published at once", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		r := newSourced(namespace, "cache")
		Expect(admin.Create(ctx, r)).To(Succeed())
		Expect(readyMessage(settled(ctx, r, v1alpha1.ReasonSourcesUnread))).To(ContainSubstring("Service cache): it does not exist"))
		newEndpoints(ctx, namespace, "cache", 3)
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Eventually(func() []string { return backendsOn(ctx, r) }).Should(Equal([]string{"cache-0", "cache-1", "cache-2"}))
		Expect(got.Status.Active.Revision).To(BeNumerically("<=", 2), "the slices come one after the other")
		Expect(routingOf(ctx, r).Addresses).To(HaveKeyWithValue("cache-2", "10.244.0.3:8080"))
	})

	It("keeps every byte of its snapshot through a rolling restart", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		e := newEndpoints(ctx, namespace, "cache", 10)
		r := newSourced(namespace, "cache")
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		before := getConfigMap(ctx, namespace, "cache-a")
		for i := range e.pods {
			for _, step := range []endpoint{{terminating: true}, {}, {ready: true}} {
				step.name, step.address = e.pods[i].name, e.pods[i].address
				if !step.terminating {
					step.address = fmt.Sprintf("10.244.1.%d", i+1)
				}
				e.pods[i] = step
				e.write(ctx)
				if !step.ready {
					Eventually(func() []string { return routingOf(ctx, r).Down }).Should(Equal([]string{step.name}))
				}
			}
			Eventually(func() []string { return routingOf(ctx, r).Down }).Should(BeEmpty())
		}
		Eventually(func(g Gomega) {
			for i := range e.pods {
				g.Expect(routingOf(ctx, r).Addresses).To(HaveKeyWithValue(e.pods[i].name, fmt.Sprintf("10.244.1.%d:8080", i+1)))
			}
		}).Should(Succeed())
		Expect(getConfigMap(ctx, namespace, "cache-a").ResourceVersion).To(Equal(before.ResourceVersion), "the snapshot was written")
	})

	It("says beforehand what it costs to follow addresses", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		e := newEndpoints(ctx, namespace, "cache", 10)
		r := newSourced(namespace, "cache")
		r.Spec.Identity = v1alpha1.IdentityAddress
		r.Spec.Membership.JoinDelay = &metav1.Duration{Duration: time.Hour}
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		e.pods[9].address = "10.244.1.10"
		e.write(ctx)
		got := &v1alpha1.HashRing{}
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
			g.Expect(got.Status.Pending).NotTo(BeNil())
			g.Expect(got.Status.Backends.Joining).To(Equal(int32(1)))
			g.Expect(got.Status.Backends.Leaving).To(Equal(int32(1)))
		}).Should(Succeed())
		Expect(got.Status.Pending.Movement).To(MatchRegexp(`^1\d\.\d\d%$|^2\d\.\d\d%$`), "one of ten goes and another comes")
		Expect(got.Status.Active.Revision).To(Equal(int64(1)))
	})

	It("holds the last good ring when most of the pods vanish", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		e := newEndpoints(ctx, namespace, "cache", 10)
		r := newSourced(namespace, "cache")
		r.Spec.Membership.LeaveDelay = &metav1.Duration{Duration: time.Second}
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		before := getConfigMap(ctx, namespace, "cache-a")
		e.lose(ctx, 6)
		got := settled(ctx, r, v1alpha1.ReasonSuddenLoss)
		Expect(meta.IsStatusConditionTrue(got.Status.Conditions, string(v1alpha1.ConditionHeld))).To(BeTrue())
		Expect(routingOf(ctx, r).Down).To(HaveLen(6))
		Expect(getConfigMap(ctx, namespace, "cache-a").ResourceVersion).To(Equal(before.ResourceVersion))

		By("coming back")
		generation := routingOf(ctx, r).Generation
		e.write(ctx)
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		Eventually(func() []string { return routingOf(ctx, r).Down }).Should(BeEmpty())
		Expect(routingOf(ctx, r).Generation).To(BeNumerically("<=", generation+2), "the two slices come one after the other")
		Expect(getConfigMap(ctx, namespace, "cache-a").ResourceVersion).To(Equal(before.ResourceVersion), "the snapshot was written")

		By("vanishing again, which somebody confirms")
		e.lose(ctx, 6)
		got = settled(ctx, r, v1alpha1.ReasonSuddenLoss)
		edit(ctx, r, func(r *v1alpha1.HashRing) {
			r.Annotations = map[string]string{v1alpha1.AnnotationRelease: got.Status.Hold.Token}
		})
		Eventually(func() []string { return backendsOn(ctx, r) }).Should(Equal([]string{"cache-6", "cache-7", "cache-8", "cache-9"}))
		settled(ctx, r, v1alpha1.ReasonRingPublished)
	})

	It("takes weights and labels from pods, and waits for those that it does not know yet", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newEndpoints(ctx, namespace, "cache", 3)
		r := newSourced(namespace, "cache")
		r.Spec.BackendsFrom[0].WeightAnnotation, r.Spec.BackendsFrom[0].LabelsFromPod = "ringwright.dev/weight", []string{"tier"}
		r.Spec.Features = []v1alpha1.Feature{{Name: "ssd", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "ssd"}}}}
		for i := range 2 {
			Expect(admin.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: fmt.Sprintf("cache-%d", i), Labels: map[string]string{"tier": []string{"ssd", "hdd"}[i]},
					Annotations: map[string]string{"ringwright.dev/weight": fmt.Sprint(i + 2)},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "cache", Image: "cache"}}},
			})).To(Succeed())
		}
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		wantConfig := func(want ...ring.Backend) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				config, err := ring.ReadConfig(files(ctx, r)[routing.SlotA.FileName()])
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(config.Backends).To(Equal(want))
			}).Should(Succeed())
		}
		wantConfig(ring.Backend{ID: "cache-0", Weight: 2, Zone: "a", Features: []string{"ssd"}}, ring.Backend{ID: "cache-1", Weight: 3, Zone: "a"})
		By("a pod gets another label and a weight that is none")
		pod := &corev1.Pod{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "cache-1"}, pod)).To(Succeed())
		pod.Labels["tier"], pod.Annotations["ringwright.dev/weight"] = "ssd", "heavy"
		Expect(admin.Update(ctx, pod)).To(Succeed())
		wantConfig(ring.Backend{ID: "cache-0", Weight: 2, Zone: "a", Features: []string{"ssd"}}, ring.Backend{ID: "cache-1", Weight: 3, Zone: "a", Features: []string{"ssd"}})
		Eventually(func(g Gomega) {
			got := &v1alpha1.HashRing{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
			condition := meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionBackendsResolved))
			g.Expect(condition.Reason).To(Equal(string(v1alpha1.ReasonInvalidWeight)))
			g.Expect(condition.Message).To(ContainSubstring(`pod cache-1 is "heavy"`))
		}).Should(Succeed())
	})

	It("publishes no more often than minInterval while endpoints come and go, and ends with the last state", func(ctx SpecContext) {
		const interval = 2 * time.Second
		namespace := newNamespace(ctx)
		e := newEndpoints(ctx, namespace, "cache", 8)
		r := newSourced(namespace, "cache")
		r.Spec.Publication.MinInterval = &metav1.Duration{Duration: interval}
		r.Spec.Membership.LeaveDelay, r.Spec.Membership.MaxRemoved = &metav1.Duration{}, "100%"
		Expect(admin.Create(ctx, r)).To(Succeed())
		first := settled(ctx, r, v1alpha1.ReasonRingPublished)
		began := time.Now()
		for time.Since(began) < 3*interval {
			for n := range 7 {
				e.lose(ctx, n)
			}
		}
		last := time.Now()
		Eventually(func() []string { return backendsOn(ctx, r) }).Should(Equal([]string{"cache-6", "cache-7"}))
		Expect(time.Since(last)).To(BeNumerically("<", interval+2*time.Second))
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		publications := got.Status.Routing.Generation - first.Status.Routing.Generation
		Expect(publications).To(BeNumerically("<=", int64(time.Since(began)/interval)+2))
	})

	It("keeps who is down and the delays that run while the Service cannot be read", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		e := newEndpoints(ctx, namespace, "cache", 10)
		r := newSourced(namespace, "cache")
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		e.lose(ctx, 6)
		got := &v1alpha1.HashRing{}
		unread := func(reason v1alpha1.ConditionReason) func(Gomega) {
			return func(g Gomega) {
				g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
				g.Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
				g.Expect(meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionBackendsResolved)).Reason).To(Equal(string(reason)))
				g.Expect(got.Status.Members).To(HaveLen(6))
				g.Expect(got.Status.Hold).To(HaveField("Count", int32(6)))
			}
		}
		Eventually(unread(v1alpha1.ReasonResolved)).Should(Succeed())
		hold, members := got.Status.Hold.DeepCopy(), got.Status.Members
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.BackendsFrom[0].Service.Port = ptr.To(intstr.FromString("htpp")) })
		Eventually(unread(v1alpha1.ReasonPortNotFound)).Should(Succeed())
		Expect(got.Status.Hold).To(Equal(hold))
		Expect(got.Status.Members).To(Equal(members))
		Expect(got.Status.Pending).To(BeNil())
		Expect(routingOf(ctx, r).Down).To(HaveLen(6))
		Expect(backendsOn(ctx, r)).To(HaveLen(10))
	})

	It("changes nothing when the operator is started again", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		e := newEndpoints(ctx, namespace, "cache", 10)
		r := newSourced(namespace, "cache")
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		e.lose(ctx, 2)
		Eventually(func() []string { return routingOf(ctx, r).Down }).Should(HaveLen(2))
		leaving := func() string {
			got := &v1alpha1.HashRing{}
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
			text, err := json.Marshal(got.Status)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Status.Members).To(HaveLen(2))
			return string(text)
		}
		Eventually(func(g Gomega) {
			got := &v1alpha1.HashRing{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
			g.Expect(got.Status.Members).To(HaveLen(2))
		}).Should(Succeed())
		Consistently(leaving, "2s").Should(Equal(leaving()))
		status, objects := leaving(), published(ctx, r)
		restartOperator()
		Consistently(leaving, "3s").Should(Equal(status))
		for part, cm := range published(ctx, r) {
			Expect(cm.ResourceVersion).To(Equal(objects[part].ResourceVersion), "%s was written", part)
		}
	})
})

var _ = Describe("a candidate", func() {
	It("waits, is dropped with the edit, and is taken at once where that is asked for", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "waiting", 10)
		r.Spec.ChangePolicy = v1alpha1.ChangeMigrate
		Expect(admin.Create(ctx, r)).To(Succeed())
		first := settled(ctx, r, v1alpha1.ReasonRingPublished)
		before := getConfigMap(ctx, r.Namespace, "waiting-a")
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Algorithm.PointsPerWeight = 40 })
		got := settled(ctx, r, v1alpha1.ReasonCandidateWaiting)
		Expect(got.Status.Candidate.Movement).To(MatchRegexp(`^[5-8]\d\.\d\d%$`))
		Expect(got.Status.Candidate.Digest).NotTo(Equal(first.Status.Active.Digest))
		Expect(getConfigMap(ctx, r.Namespace, "waiting-a").ResourceVersion).To(Equal(before.ResourceVersion))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Algorithm.PointsPerWeight = 160 })
		Expect(settled(ctx, r, v1alpha1.ReasonRingPublished).Status.Candidate).To(BeNil())
		edit(ctx, r, func(r *v1alpha1.HashRing) {
			r.Spec.Algorithm.PointsPerWeight, r.Spec.ChangePolicy = 40, v1alpha1.ChangeImmediate
		})
		now := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(now.Status.Active.Digest).To(Equal(got.Status.Candidate.Digest))
		Expect(now.Status.Active.Movement).To(Equal(got.Status.Candidate.Movement))
	})

	It("is no obstacle to a pin, which goes back to the bytes of an earlier revision", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "pinned", 10)
		Expect(admin.Create(ctx, r)).To(Succeed())
		first := settled(ctx, r, v1alpha1.ReasonRingPublished)
		before := payload(getConfigMap(ctx, r.Namespace, "pinned-a"))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(12) })
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.PinnedRevision = ptr.To(int64(1)) })
		got := settled(ctx, r, v1alpha1.ReasonPinned)
		Expect(got.Status.Active.Digest).To(Equal(first.Status.Active.Digest))
		Expect(got.Status.Active.Revision).To(Equal(int64(3)))
		Expect(payload(getConfigMap(ctx, r.Namespace, "pinned-a"))).To(Equal(before))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.PinnedRevision = ptr.To(int64(99)) })
		Expect(readyMessage(settled(ctx, r, v1alpha1.ReasonRevisionNotFound))).To(ContainSubstring("revisions that are: 1, 2, 3"))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.PinnedRevision = nil })
		settled(ctx, r, v1alpha1.ReasonRingPublished)
	})
})
