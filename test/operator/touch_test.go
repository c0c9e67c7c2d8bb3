// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/plan"
)

// newTouched returns a HashRing that has the pods touched that are labelled as its readers.
func newTouched(namespace, name string) *v1alpha1.HashRing {
	r := newRead(namespace, name, 0)
	r.Spec.Consumers.Refresh = v1alpha1.RefreshTouchPods
	return r
}

// mounting makes a pod in a phase that mounts ConfigMaps: the first one alone, the others in a projected volume.
func mounting(ctx context.Context, namespace, name string, phase corev1.PodPhase, labels map[string]string, configMaps ...string) {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: map[string]string{"kept": "as it is"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "reader", Image: "reader"}}},
	}
	projected := &corev1.ProjectedVolumeSource{}
	for i, cm := range configMaps {
		reference := corev1.LocalObjectReference{Name: cm}
		if i == 0 {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
				Name: "one", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: reference}},
			})
			continue
		}
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: reference}})
	}
	if len(projected.Sources) > 0 {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "all", VolumeSource: corev1.VolumeSource{Projected: projected}})
	}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	pod.Status.Phase = phase
	Expect(admin.Status().Update(ctx, pod)).To(Succeed())
}

// reads are the labels of a reader.
var reads = map[string]string{"app": "reader"}

// refreshed waits until condition Refreshed has a reason and status.refresh these figures, and returns the ring.
func refreshed(ctx context.Context, r *v1alpha1.HashRing, reason v1alpha1.ConditionReason, total, touched, refused int32) *v1alpha1.HashRing {
	GinkgoHelper()
	got := &v1alpha1.HashRing{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
		condition := meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionRefreshed))
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(string(reason)), "%s", condition.Message)
		g.Expect(got.Status.Refresh).To(HaveValue(Equal(v1alpha1.RefreshStatus{
			Generation: got.Status.Routing.Generation, Total: total, Touched: touched, Refused: refused,
		})))
	}).WithTimeout(60 * time.Second).Should(Succeed())
	return got
}

// markOf returns what a pod was touched with for a ring.
func markOf(ctx context.Context, r *v1alpha1.HashRing, name string) string {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, pod)).To(Succeed())
	Expect(pod.Annotations).To(HaveKeyWithValue("kept", "as it is"))
	return pod.Annotations[plan.TouchAnnotation(r.Name)]
}

// touchesOf returns when the operator patched pods of a namespace, by their names.
func touchesOf(namespace string) map[string][]time.Time {
	GinkgoHelper()
	touches := map[string][]time.Time{}
	for _, e := range auditEvents() {
		if e.ObjectRef.Resource == "pods" && e.ObjectRef.Namespace == namespace && e.Verb == "patch" {
			touches[e.ObjectRef.Name] = append(touches[e.ObjectRef.Name], e.RequestReceivedTimestamp.Time)
		}
	}
	return touches
}

// installTouchPods applies config/components/touch-pods as an overlay would.
func installTouchPods(ctx context.Context) {
	GinkgoHelper()
	dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	component, err := filepath.Rel(dir, filepath.Join(root, "config", "components", "touch-pods"))
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("components: ["+component+"]\n"), 0o600)).To(Succeed())
	Expect(controlPlane.Install(ctx, dir, nil)).To(Succeed())
}

var _ = Describe("pods that are touched", Ordered, func() {
	It("are left alone without the right, which the condition says, and touched soon after it is granted", func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: "ringwright-manager-role"}, role)).To(Succeed())
		granted := map[string]bool{}
		addRules(granted, role.Rules)
		Expect(granted).To(HaveKey("watch /pods"))
		Expect(granted).NotTo(Or(HaveKey("patch /pods"), HaveKey("update /pods")))

		namespace := newNamespace(ctx)
		mounting(ctx, namespace, "p-0", corev1.PodRunning, reads, "touched-routing", "touched-a", "touched-b")
		r := newTouched(namespace, "touched")
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		got := refreshed(ctx, r, v1alpha1.ReasonTouchForbidden, 1, 0, 0)
		Expect(meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionRefreshed)).Message).To(Equal(
			"the operator may not patch pods in namespace " + namespace + " (no role grants it): apply config/components/touch-pods, " +
				"or set spec.consumers.refresh to Kubelet; until then kubelets bring what is published when they next sync the pods"))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(4) })
		Expect(settled(ctx, r, v1alpha1.ReasonRingPublished).Status.Active.Revision).To(Equal(int64(2)), "nothing of it holds up the ring")
		Expect(markOf(ctx, r, "p-0")).To(BeEmpty())
		Expect(touchesOf(namespace)).To(BeEmpty(), "it asks before it tries")
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(And(HaveField("Reason", "TouchForbidden"), HaveField("Type", "Warning"))))
		}).Should(Succeed())

		installTouchPods(ctx)
		got = refreshed(ctx, r, v1alpha1.ReasonAllPodsTouched, 1, 1, 0)
		Expect(markOf(ctx, r, "p-0")).To(Equal(plan.TouchMark(got.Status)))
	})

	It("are those that run, are selected and mount the ring, once for each publication", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		scrape := scraper(ctx, namespace)
		var before metricFamilies
		Eventually(func(g Gomega) { before = scrape(g) }).Should(Succeed())
		mounting(ctx, namespace, "alone", corev1.PodRunning, reads, "touched-routing")
		mounting(ctx, namespace, "projected", corev1.PodRunning, reads, "unrelated", "touched-a", "touched-b", "touched-routing")
		mounting(ctx, namespace, "both", corev1.PodRunning, reads, "touched-b", "second-routing")
		mounting(ctx, namespace, "unmounted", corev1.PodRunning, reads)
		mounting(ctx, namespace, "other-files", corev1.PodRunning, reads, "unrelated", "untouched-a", "untouched-routing", "touched-a-1")
		mounting(ctx, namespace, "unselected", corev1.PodRunning, map[string]string{"app": "other"}, "touched-routing")
		mounting(ctx, namespace, "pending", corev1.PodPending, reads, "touched-routing")
		mounting(ctx, namespace, "ended", corev1.PodSucceeded, reads, "touched-routing")
		r, second, untouched := newTouched(namespace, "touched"), newTouched(namespace, "second"), newRead(namespace, "untouched", 0)
		for _, ring := range []*v1alpha1.HashRing{r, second, untouched} {
			Expect(admin.Create(ctx, ring)).To(Succeed())
		}
		got := refreshed(ctx, r, v1alpha1.ReasonAllPodsTouched, 3, 3, 0)
		refreshed(ctx, second, v1alpha1.ReasonAllPodsTouched, 1, 1, 0)
		for _, name := range []string{"alone", "projected", "both"} {
			Expect(markOf(ctx, r, name)).To(Equal(plan.TouchMark(got.Status)))
		}
		Expect(markOf(ctx, second, "both")).NotTo(BeEmpty())
		Expect(markOf(ctx, untouched, "other-files")).To(BeEmpty())
		unread := settled(ctx, untouched, v1alpha1.ReasonRingPublished)
		Expect(unread.Status.Refresh).To(BeNil())
		Expect(meta.FindStatusCondition(unread.Status.Conditions, string(v1alpha1.ConditionRefreshed))).To(BeNil())

		By("publishing again, and then nothing")
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(4) })
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		got = refreshed(ctx, r, v1alpha1.ReasonAllPodsTouched, 3, 3, 0)
		Expect(got.Status.Refresh.Generation).To(Equal(int64(2)))
		restartOperator()
		Consistently(func(g Gomega) {
			touches := touchesOf(namespace)
			g.Expect(touches).To(HaveLen(3))
			g.Expect([]int{len(touches["alone"]), len(touches["projected"])}).To(Equal([]int{2, 2}))
			g.Expect(len(touches["both"])).To(BeNumerically("<=", 3), "for two rings, which can be one patch")
		}, "4s").Should(Succeed())
		Eventually(func(g Gomega) {
			now := scrape(g)
			g.Expect(now.value("touches_total", "result=refused") - before.value("touches_total", "result=refused")).To(BeZero())
		}).Should(Succeed())

		By("running at last, and asking for it no more")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pending"}}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		pod.Status.Phase = corev1.PodRunning
		Expect(admin.Status().Update(ctx, pod)).To(Succeed())
		refreshed(ctx, r, v1alpha1.ReasonAllPodsTouched, 4, 4, 0)
		edit(ctx, r, func(r *v1alpha1.HashRing) {
			r.Spec.Consumers.Refresh, r.Spec.Backends = v1alpha1.RefreshKubelet, backends(5)
		})
		got = settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Refresh).To(BeNil())
		Consistently(func() int { return len(touchesOf(namespace)["alone"]) }, "1s").Should(Equal(2))
	})

	It("keep nobody waiting where one refuses, and are tried again", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		refuse(ctx, namespace)
		for i := range 3 {
			mounting(ctx, namespace, fmt.Sprint("p-", i), corev1.PodRunning, reads, "touched-routing")
		}
		mounting(ctx, namespace, "stubborn", corev1.PodRunning, reads, "touched-routing")
		r := newTouched(namespace, "touched")
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := refreshed(ctx, r, v1alpha1.ReasonPodsRefused, 4, 3, 1)
		message := meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionRefreshed)).Message
		Expect(message).To(HavePrefix("1 of 4 pods that mount the ring could not be touched for routing generation 1"))
		Expect(message).To(And(ContainSubstring("stubborn ("), ContainSubstring("it is stubborn")))
		Expect(readyMessage(settled(ctx, r, v1alpha1.ReasonRingPublished))).To(ContainSubstring("revision 1 is published"))
		Expect(admin.Delete(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		refreshed(ctx, r, v1alpha1.ReasonAllPodsTouched, 4, 4, 0)
	})

	It("are touched no faster than allowed, for the newest publication, and go on after a restart", func(ctx SpecContext) {
		const pods, perSecond = 10, 2
		operator.stop()
		operator = startManager(manager.Options{LeaderElection: true, LeaderElectionNamespace: systemNamespace, Concurrency: 2, TouchRate: perSecond})
		namespace := newNamespace(ctx)
		for i := range pods {
			mounting(ctx, namespace, fmt.Sprint("p-", i), corev1.PodRunning, reads, "touched-routing")
		}
		r := newTouched(namespace, "touched")
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(len(touchesOf(namespace))).To(BeNumerically("<", pods), "the publication waits for none of them")
		Eventually(func() int { return len(touchesOf(namespace)) }).Should(BeNumerically(">=", 4))
		restartOperator() // With the default rate.
		got := refreshed(ctx, r, v1alpha1.ReasonAllPodsTouched, pods, pods, 0)
		var slow []time.Time
		for i := range pods {
			name := fmt.Sprint("p-", i)
			Expect(markOf(ctx, r, name)).To(Equal(plan.TouchMark(got.Status)))
			Expect(touchesOf(namespace)[name]).To(HaveLen(1), "%s was touched twice for one publication", name)
			slow = append(slow, touchesOf(namespace)[name][0])
		}
		first, fourth := nth(slow, 0), nth(slow, 3)
		Expect(fourth.Sub(first)).To(BeNumerically(">=", 800*time.Millisecond), "two at once, and then two a second")
	})
})

// nth returns the time at an index of the times in order.
func nth(times []time.Time, index int) time.Time {
	for _, at := range times {
		earlier := 0
		for _, other := range times {
			if other.Before(at) {
				earlier++
			}
		}
		if earlier == index {
			return at
		}
	}
	return time.Time{}
}

// refuse has the API server refuse changes of pods named stubborn in a namespace, and waits until it does.
func refuse(ctx context.Context, namespace string) {
	GinkgoHelper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}},
		},
		Validations: []admissionv1.Validation{{
			Expression: "object.metadata.name != 'stubborn'", Message: "it is stubborn", Reason: ptr.To(metav1.StatusReasonForbidden),
		}},
	}
	Expect(admin.Create(ctx, policy)).To(Succeed())
	Expect(admin.Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	})).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(admin.Delete(ctx, policy))).To(Succeed()) })
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stubborn"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
	}
	Expect(admin.Create(ctx, probe)).To(Succeed())
	Eventually(func() error {
		return admin.Patch(ctx, probe.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"probe":"x"}}}`)))
	}).Should(MatchError(ContainSubstring("it is stubborn")))
	Expect(admin.Delete(ctx, probe, client.GracePeriodSeconds(0))).To(Succeed())
}
