// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"encoding/json"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var _ = Describe("the life of a policy", func() {
	It("leaves its weights served until the tombstone is over, and nothing after that", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 2, 3)
		s.open(startReplica("a"))
		policy := s.policy()
		policy.Spec.Deletion.Tombstone = &metav1.Duration{Duration: 8 * time.Second}
		policy.Spec.Publish.ConfigMap = &v1alpha1.ConfigMapPublication{Name: "shop-weights"}
		Expect(admin.Create(ctx, policy)).To(Succeed())
		file := &corev1.ConfigMap{}
		readFile := func() error {
			return admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop-weights"}, file)
		}
		Eventually(readFile).Should(Succeed())
		first := file.ResourceVersion
		Eventually(s.maxOverAverage).Should(BeNumerically("<=", 1.02))
		Eventually(func() string {
			Expect(readFile()).To(Succeed())
			return file.ResourceVersion
		}).ShouldNot(Equal(first), "the ConfigMap does not follow the weights")
		var content struct {
			Version   int64 `json:"version"`
			Endpoints []struct {
				Name   string `json:"name"`
				Weight uint32 `json:"weight"`
			} `json:"endpoints"`
		}
		Expect(json.Unmarshal([]byte(file.Data["weights.json"]), &content)).To(Succeed())
		Expect(content.Endpoints).To(HaveLen(3))
		Eventually(func() []appsv1.ControllerRevision {
			records := &appsv1.ControllerRevisionList{}
			Expect(admin.List(ctx, records, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelWeightPolicy: policy.Name})).To(Succeed())
			return records.Items
		}).ShouldNot(BeEmpty(), "nothing was recorded")
		waitFor(4 * time.Second) // The weights are stored.

		Expect(admin.Delete(ctx, policy)).To(Succeed())
		set := &v1alpha1.WeightSet{}
		Eventually(func() *metav1.Time {
			_ = admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop-0"}, set)
			return set.TombstoneUntil
		}).ShouldNot(BeNil())
		Expect(s.maxOverAverage()).To(BeNumerically("<=", 1.03), "the weights go on to be served")

		By("making it again within that time")
		again := s.policy()
		again.Spec = policy.Spec
		Expect(admin.Create(ctx, again)).To(Succeed())
		Consistently(s.maxOverAverage, 3*time.Second).Should(BeNumerically("<=", 1.03))
		Eventually(func() *metav1.Time {
			fresh := &v1alpha1.WeightSet{}
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop-0"}, fresh)).To(Succeed())
			return fresh.TombstoneUntil
		}).Should(BeNil())

		By("deleting it for good")
		Expect(admin.Delete(ctx, again)).To(Succeed())
		for _, list := range []client.ObjectList{&v1alpha1.WeightSetList{}, &corev1.ConfigMapList{}, &appsv1.ControllerRevisionList{}} {
			Eventually(func() int {
				Expect(admin.List(ctx, list, client.InNamespace(s.namespace), client.HasLabels{v1alpha1.LabelWeightPolicy})).To(Succeed())
				switch l := list.(type) {
				case *v1alpha1.WeightSetList:
					return len(l.Items)
				case *corev1.ConfigMapList:
					return len(l.Items)
				default:
					return len(list.(*appsv1.ControllerRevisionList).Items)
				}
			}).Should(BeZero(), "%T", list)
		}
	})

	It("says what is wrong with its target, and with what it would write over", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 2)
		startReplica("a")
		make := func(name string, change func(*v1alpha1.WeightPolicy)) *v1alpha1.WeightPolicy {
			policy := s.policy()
			policy.Name = name
			change(policy)
			Expect(admin.Create(ctx, policy)).To(Succeed())
			return policy
		}
		Expect(admin.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "ports"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "a", Port: 1}, {Name: "b", Port: 2}}},
		})).To(Succeed())
		Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "foreign"}, Data: map[string]string{"a": "b"}})).To(Succeed())
		service := make("none", func(p *v1alpha1.WeightPolicy) { p.Spec.TargetRef.Name = "none" })
		Eventually(condition(ctx, service, v1alpha1.ConditionReady)).Should(Equal("False ServiceNotFound"))
		Eventually(condition(ctx, service, v1alpha1.ConditionStalled)).Should(Equal("True ServiceNotFound"))
		ports := make("ports", func(p *v1alpha1.WeightPolicy) { p.Spec.TargetRef.Name = "ports" })
		Eventually(condition(ctx, ports, v1alpha1.ConditionReady)).Should(Equal("False PortNotFound"))
		port := make("port", func(p *v1alpha1.WeightPolicy) { p.Spec.TargetRef.Port = ptr.To(intstr.FromInt32(81)) })
		Eventually(condition(ctx, port, v1alpha1.ConditionReady)).Should(Equal("False PortNotFound"))
		empty := make("empty", func(p *v1alpha1.WeightPolicy) {
			p.Spec.TargetRef.Name, p.Spec.TargetRef.Port = "ports", ptr.To(intstr.FromString("a"))
		})
		Eventually(condition(ctx, empty, v1alpha1.ConditionReady)).Should(Equal("False NoEndpoints"))
		Eventually(condition(ctx, empty, v1alpha1.ConditionReconciling)).Should(Equal("True NoEndpoints"))
		ring := make("ring", func(p *v1alpha1.WeightPolicy) {
			p.Spec.TargetRef = v1alpha1.WeightTarget{Kind: v1alpha1.TargetHashRing, Name: "none"}
		})
		Eventually(condition(ctx, ring, v1alpha1.ConditionReady)).Should(Equal("False RingNotFound"))
		first := make("first", func(p *v1alpha1.WeightPolicy) {
			p.Spec.Publish.ConfigMap = &v1alpha1.ConfigMapPublication{Name: "foreign"}
		})
		Eventually(condition(ctx, first, v1alpha1.ConditionReady)).Should(Equal("False NameConflict"))
		waitFor(1100 * time.Millisecond) // Creation has whole seconds.
		second := make("second", func(*v1alpha1.WeightPolicy) {})
		Eventually(condition(ctx, second, v1alpha1.ConditionReady)).Should(Equal("False TargetTaken"))
		foreign := &corev1.ConfigMap{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "foreign"}, foreign)).To(Succeed())
		Expect(foreign.Data).To(Equal(map[string]string{"a": "b"}))
		pinned := make("pinned", func(p *v1alpha1.WeightPolicy) {
			p.Spec.TargetRef.Name, p.Spec.TargetRef.Port = "ports", ptr.To(intstr.FromString("b"))
			p.Annotations = map[string]string{v1alpha1.AnnotationPinnedWeights: "7"}
		})
		Eventually(condition(ctx, pinned, v1alpha1.ConditionReady)).Should(Equal("False RevisionNotFound"))

		By("the first one going away, the second one takes the target")
		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(condition(ctx, second, v1alpha1.ConditionReady), 45*time.Second).Should(HavePrefix("True"))
	})

	It("takes reports of pods for themselves only, and says what is wrong with the others", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 2)
		balancer := startReplica("a")
		Expect(admin.Create(ctx, s.policy())).To(Succeed())
		const jsonType = "application/json"
		good := []byte(`{"cpuUtilization": 0.5}`)
		token := s.servers[0].token
		Eventually(func() int { code, _ := pushTo(ctx, balancer, token, jsonType, good); return code }).Should(Equal(http.StatusOK))
		waitFor(time.Second)
		for name, bad := range map[string]struct {
			token, body string
			code        int
			says        string
		}{
			"no token":         {"", string(good), http.StatusUnauthorized, ""},
			"a wrong token":    {"wrong", string(good), http.StatusUnauthorized, ""},
			"an account's":     {tokenOf(ctx, s.namespace, "default", nil), string(good), http.StatusUnauthorized, ""},
			"a negative":       {token, `{"cpuUtilization": -1}`, http.StatusBadRequest, "cpu_utilization"},
			"a huge":           {token, `{"cpuUtilization": 1e300}`, http.StatusBadRequest, "cpu_utilization"},
			"not a number":     {token, `{"cpuUtilization": "NaN"}`, http.StatusBadRequest, "cpu_utilization"},
			"no report":        {token, `[]`, http.StatusBadRequest, ""},
			"an unknown field": {token, `{"endpoint": "another"}`, http.StatusBadRequest, "endpoint"},
		} {
			By(name)
			waitFor(600 * time.Millisecond)
			code, body := pushTo(ctx, balancer, bad.token, jsonType, []byte(bad.body))
			Expect(code).To(Equal(bad.code), body)
			Expect(body).To(ContainSubstring(bad.says))
		}
		outsider := newShop(ctx, "other", 1)
		code, _ := pushTo(ctx, balancer, outsider.servers[0].token, jsonType, good)
		Expect(code).To(Equal(http.StatusNotFound), "no policy has that pod")
	})
})
