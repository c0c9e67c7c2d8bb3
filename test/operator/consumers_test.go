// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/agentapi"
)

// fleet is pods that read a ring, each at an address of loopback, behind one server that answers for all of them.
type fleet struct {
	namespace string
	port      int32
	ips       []string

	mu sync.Mutex
	// says is what they say by their address; one that says nothing hangs up.
	says map[string]agentapi.Status
}

// newFleet makes n pods p-0, p-1 and so on that run and have no ring yet. The last one has an IPv6 address where there are such.
func newFleet(ctx context.Context, namespace string, n int) *fleet {
	GinkgoHelper()
	f := &fleet{namespace: namespace, says: map[string]agentapi.Status{}}
	last := "::1"
	listener, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		last = "127.0.2.1"
		listener, err = net.Listen("tcp", "0.0.0.0:0")
	}
	Expect(err).NotTo(HaveOccurred())
	f.port = int32(netip.MustParseAddrPort(listener.Addr().String()).Port())
	server := &http.Server{Handler: f}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	for i := range n {
		ip := fmt.Sprintf("127.0.1.%d", i+1)
		if i == n-1 {
			ip = last
		}
		f.ips = append(f.ips, ip)
		f.says[ip] = agentapi.Status{}
		f.create(ctx, i)
	}
	return f
}

func (f *fleet) create(ctx context.Context, i int) {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: fmt.Sprint("p-", i), Labels: map[string]string{"app": "reader"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "reader", Image: "reader"}}},
	}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, f.ips[i], []corev1.PodIP{{IP: f.ips[i]}}
	Expect(admin.Status().Update(ctx, pod)).To(Succeed())
}

func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	ip := netip.MustParseAddrPort(local.String()).Addr().Unmap().String()
	f.mu.Lock()
	status, says := f.says[ip]
	f.mu.Unlock()
	if !says || r.URL.Path != agentapi.StatusPath {
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(w).Encode(status)
}

// load has pods take what is published, as an agent would, but for what change says.
func (f *fleet) load(ctx context.Context, r *v1alpha1.HashRing, from, to int, change func(s *agentapi.Status)) {
	GinkgoHelper()
	file := routingOf(ctx, r)
	for i := from; i < to; i++ {
		s := agentapi.Status{Ready: true, Datacenter: fmt.Sprint("dc", i%2), Routing: &agentapi.Routing{
			Ring: file.Ring, UID: file.UID, Generation: file.Generation, LeaderEpoch: file.LeaderEpoch, Stable: agentapi.Ring{Digest: file.Stable.Digest},
		}}
		if change != nil {
			change(&s)
		}
		f.mu.Lock()
		f.says[f.ips[i]] = s
		f.mu.Unlock()
	}
}

// applied waits until condition Applied has a reason, and returns the ring.
func applied(ctx context.Context, r *v1alpha1.HashRing, reason v1alpha1.ConditionReason, also func(g Gomega, s v1alpha1.HashRingStatus)) *v1alpha1.HashRing {
	GinkgoHelper()
	got := &v1alpha1.HashRing{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
		condition := meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionApplied))
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(string(reason)), "%s", condition.Message)
		if also != nil {
			also(g, got.Status)
		}
	}).WithTimeout(45 * time.Second).Should(Succeed())
	ready := meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionReady))
	Expect(ready.Reason).To(Equal(string(v1alpha1.ReasonRingPublished)), "readers are no matter of the ring")
	return got
}

func figures(total, current int) func(g Gomega, s v1alpha1.HashRingStatus) {
	return func(g Gomega, s v1alpha1.HashRingStatus) {
		g.Expect(s.Consumers).NotTo(BeNil())
		g.Expect([]int32{s.Consumers.Total, s.Consumers.Current, s.Consumers.Stale}).To(Equal([]int32{int32(total), int32(current), int32(total - current)}))
	}
}

func newRead(namespace, name string, port int32) *v1alpha1.HashRing {
	r := newRing(namespace, name, 3)
	r.Spec.Consumers = &v1alpha1.Consumers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "reader"}}, Port: port}
	return r
}

var _ = Describe("acknowledgement", func() {
	It("follows what the consumers have, names the stale ones, and survives a restart", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		scrape := scraper(ctx, namespace)
		f := newFleet(ctx, namespace, 4)
		r := newRead(namespace, "read", f.port)
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := applied(ctx, r, v1alpha1.ReasonWaitingForConsumers, figures(4, 0))
		Expect(got.Status.Consumers.StalePods[0]).To(Equal(v1alpha1.StalePod{Name: "p-0", Reason: v1alpha1.StaleNotReady, Message: "it has no ring yet"}))
		f.load(ctx, r, 0, 4, nil)
		got = applied(ctx, r, v1alpha1.ReasonAllConsumersCurrent, figures(4, 4))
		Expect(got.Status.Consumers).To(HaveField("Generation", int64(1)))
		Expect(got.Status.Consumers.Datacenters).To(Equal([]v1alpha1.DatacenterConsumers{
			{Name: "dc0", Total: 2, Current: 2, Stable: 2}, {Name: "dc1", Total: 2, Current: 2, Stable: 2},
		}))

		By("publishing another ring, which one pod does not take")
		var before metricFamilies
		Eventually(func(g Gomega) { before = scrape(g) }).Should(Succeed())
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(4) })
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		f.load(ctx, r, 0, 3, nil)
		got = applied(ctx, r, v1alpha1.ReasonWaitingForConsumers, figures(4, 3))
		stale := []v1alpha1.StalePod{{
			Name: "p-3", Datacenter: "dc1", Reason: v1alpha1.StaleOldGeneration, Generation: 1, Message: "it has generation 1, published is 2",
		}}
		Expect(got.Status.Consumers.StalePods).To(Equal(stale))
		Eventually(func(g Gomega) {
			now := scrape(g)
			g.Expect(now.value("applied_latency_seconds", "consumers=one") - before.value("applied_latency_seconds", "consumers=one")).To(Equal(3.0))
			ring := []string{"namespace=" + namespace, "name=read"}
			g.Expect(now.value("consumers", append(ring, "state=current")...)).To(Equal(3.0))
			g.Expect(now.value("datacenter_consumers", append(ring, "datacenter=dc1", "state=stale")...)).To(Equal(1.0))
		}).Should(Succeed())

		By("restarting the operator, which keeps what it knew and writes nothing")
		status, writes := got.Status, writesOfOperator(namespace)
		restartOperator()
		Consistently(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
			g.Expect(got.Status).To(Equal(status))
		}, "6s").Should(Succeed())
		Expect(writesOfOperator(namespace)).To(Equal(writes))

		By("having the generation with another snapshot, which is an alarm")
		f.load(ctx, r, 3, 4, func(s *agentapi.Status) { s.Stable.Digest = got.Status.Active.Digest[:70] + "x" })
		got = applied(ctx, r, v1alpha1.ReasonDigestMismatch, figures(4, 3))
		Expect(got.Status.Consumers.Mismatched).To(Equal(int32(1)))
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			var reasons []string
			for _, e := range list.Items {
				reasons = append(reasons, e.Type+" "+e.Reason)
			}
			g.Expect(reasons).To(ContainElement("Warning DigestMismatch"))
		}).Should(Succeed())

		By("ignoring the split, hanging up, and going away")
		f.load(ctx, r, 3, 4, func(s *agentapi.Status) { s.Forced = "stable" })
		got = applied(ctx, r, v1alpha1.ReasonWaitingForConsumers, figures(4, 3))
		Expect(got.Status.Consumers.Overridden).To(Equal(int32(1)))
		f.mu.Lock()
		delete(f.says, f.ips[3])
		f.mu.Unlock()
		applied(ctx, r, v1alpha1.ReasonWaitingForConsumers, func(g Gomega, s v1alpha1.HashRingStatus) {
			g.Expect(s.Consumers.Unreachable).To(Equal(int32(1)))
		})
		Expect(admin.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p-3"}}, client.GracePeriodSeconds(0))).To(Succeed())
		applied(ctx, r, v1alpha1.ReasonAllConsumersCurrent, figures(3, 3))
	})

	It("says when nobody is declared or found, and counts pods that wait but not those that have ended", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		r := newRing(namespace, "unread", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		Expect(applied(ctx, r, v1alpha1.ReasonNoConsumersDeclared, nil).Status.Consumers).To(BeNil())
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Consumers = newRead("", "", 0).Spec.Consumers })
		applied(ctx, r, v1alpha1.ReasonNoConsumersFound, figures(0, 0))
		for i, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed} {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("p-", i), Labels: map[string]string{"app": "reader"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "reader", Image: "reader"}}},
			}
			Expect(admin.Create(ctx, pod)).To(Succeed())
			pod.Status.Phase = phase
			Expect(admin.Status().Update(ctx, pod)).To(Succeed())
		}
		got := applied(ctx, r, v1alpha1.ReasonWaitingForConsumers, figures(1, 0))
		Expect(got.Status.Consumers.StalePods).To(Equal([]v1alpha1.StalePod{{Name: "p-0", Reason: v1alpha1.StaleNotReady, Message: "it has no address yet"}}))
		edit(ctx, r, func(r *v1alpha1.HashRing) {
			r.Spec.Consumers.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn}}
		})
		applied(ctx, r, v1alpha1.ReasonInvalidSelector, nil)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Consumers = nil })
		Expect(applied(ctx, r, v1alpha1.ReasonNoConsumersDeclared, nil).Status.Consumers).To(BeNil())
	})
})
