// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/agentapi"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// specs are the HashRings of the tests by their names. They are applied as text: the types of this build have fields that the baseline
// does not know.
var specs = map[string]string{
	"v1":       `{algorithm: {version: V1}, identity: NGINX, publication: {minInterval: 0s}, backends: BACKENDS}`,
	"v2":       `{publication: {minInterval: 0s}, features: FEATURES, backends: BACKENDS}`,
	"v3":       `{algorithm: {version: V3, pointsPerWeight: 40, maxImbalance: "2%"}, publication: {minInterval: 0s}, features: FEATURES, backends: BACKENDS}`,
	"chunked":  `{publication: {minInterval: 0s, chunks: 2, encoding: Recipe}, identity: Name, backends: BACKENDS}`,
	"waiting":  `{publication: {minInterval: 0s}, backends: BACKENDS}`,
	"pinned":   `{publication: {minInterval: 0s}, changePolicy: Immediate, backends: BACKENDS}`,
	"held":     `{identity: Name, publication: {minInterval: 0s}, membership: {maxRemoved: "10%", leaveDelay: 0s}, backendsFrom: [{service: {name: cache}}]}`,
	"moving":   `{algorithm: {version: V1}, publication: {minInterval: 0s}, consumers: {selector: {matchLabels: {app: reader}}}, backends: BACKENDS}`,
	"declared": `{publication: {minInterval: 0s}, consumers: {selector: {matchLabels: {app: nobody}}}, backends: BACKENDS}`,
}

// changes are applied to the HashRings once they are published.
var changes = map[string]string{
	"pinned":  strings.Replace(specs["pinned"], "{", "{pinnedRevision: 1, algorithm: {pointsPerWeight: 80}, ", 1),
	"waiting": strings.Replace(specs["waiting"], "{", "{algorithm: {pointsPerWeight: 80}, ", 1),
	"moving":  strings.Replace(specs["moving"], "version: V1", "version: V2, pointsPerWeight: 40", 1),
}

// migration moves HashRing moving: it waits for an approval at half of the traffic.
const migration = `{ringRef: {name: moving}, retirement: {soak: 1s}, stages: [{name: world, datacenters: {remainder: true}, steps: [
  {traffic: "10%", soak: 1s}, {traffic: "50%", soak: 1s, approval: AfterSoak}, {traffic: "100%", soak: 1s}]}]}`

func (c *cluster) apply(ctx context.Context, kind, name, spec string) {
	GinkgoHelper()
	var backends []string
	for i := range 6 {
		backends = append(backends, fmt.Sprintf("{name: c%d, address: 10.1.0.%d, port: 8080, weight: %d, labels: {eu: %q, tier: t%d}}", i, i+1, i%3+1, fmt.Sprint(i < 4), i%2))
	}
	features := "[{name: eu, selector: {matchLabels: {eu: \"true\"}}}, {name: ssd, selector: {matchLabels: {tier: t1}}}]"
	text := strings.NewReplacer("BACKENDS", "["+strings.Join(backends, ", ")+"]", "FEATURES", features).Replace(spec)
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte("{apiVersion: ringwright.dev/v1alpha1, kind: "+kind+", spec: "+text+"}"), &object.Object)).To(Succeed())
	object.SetNamespace(namespace)
	object.SetName(name)
	Expect(c.Apply(ctx, object)).To(Succeed())
}

// publishAll has the operator that runs publish everything, and brings it to where the tests find it.
func (c *cluster) publishAll(ctx context.Context) {
	GinkgoHelper()
	c.applyCache(ctx, 4)
	for name, spec := range specs {
		c.apply(ctx, "HashRing", name, spec)
	}
	for name := range specs {
		c.condition(ctx, name, v1alpha1.ConditionReady, v1alpha1.ReasonRingPublished)
	}
	for name, spec := range changes {
		c.apply(ctx, "HashRing", name, spec)
	}
	c.condition(ctx, "pinned", v1alpha1.ConditionReady, v1alpha1.ReasonPinned)
	c.condition(ctx, "waiting", v1alpha1.ConditionReady, v1alpha1.ReasonCandidateWaiting)
	c.condition(ctx, "moving", v1alpha1.ConditionReady, v1alpha1.ReasonCandidateWaiting)
	c.applyCache(ctx, 2)
	c.condition(ctx, "held", v1alpha1.ConditionReady, v1alpha1.ReasonSuddenLoss)
	c.apply(ctx, "RingMigration", "move", migration)
	c.awaitApproval(ctx)
}

// applyCache has Service cache have n endpoints that are ready.
func (c *cluster) applyCache(ctx context.Context, n int) {
	GinkgoHelper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache"}, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "http", Port: 8080}},
	}}
	Expect(client.IgnoreAlreadyExists(c.admin.Create(ctx, service))).To(Succeed())
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache-0", Labels: map[string]string{discoveryv1.LabelServiceName: "cache"}},
	}
	found := c.admin.Get(ctx, client.ObjectKeyFromObject(slice), slice) == nil
	slice.AddressType, slice.Endpoints = discoveryv1.AddressTypeIPv4, nil
	slice.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(8080))}}
	for i := range n {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.2.0.%d", i+1)}, Hostname: ptr.To(fmt.Sprint("cache-", i)),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	if found {
		Expect(c.admin.Update(ctx, slice)).To(Succeed())
		return
	}
	Expect(c.admin.Create(ctx, slice)).To(Succeed())
}

// condition waits until a condition of a HashRing is about the present spec and has a reason.
func (c *cluster) condition(ctx context.Context, name string, kind v1alpha1.ConditionType, reason v1alpha1.ConditionReason) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		ring := &v1alpha1.HashRing{}
		g.Expect(c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ring)).To(Succeed())
		got := meta.FindStatusCondition(ring.Status.Conditions, string(kind))
		g.Expect(got).NotTo(BeNil())
		g.Expect(got.ObservedGeneration).To(Equal(ring.Generation))
		g.Expect(got.Reason).To(Equal(string(reason)), "%s of %s: %s", kind, name, got.Message)
	}).Should(Succeed())
}

// awaitApproval waits until the migration asks for its approval, and returns it.
func (c *cluster) awaitApproval(ctx context.Context) *v1alpha1.RingMigration {
	GinkgoHelper()
	got := &v1alpha1.RingMigration{}
	Eventually(func(g Gomega) {
		g.Expect(c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "move"}, got)).To(Succeed())
		g.Expect(got.Status.Holds).To(ContainElement(HaveField("Type", v1alpha1.HoldType("AwaitingApproval"))), "%s: %+v", got.Status.Phase, got.Status.Holds)
	}).Should(Succeed())
	return got
}

// startReader makes the pod that reads HashRing moving. It has what is published as soon as that is.
func (c *cluster) startReader(ctx context.Context) {
	GinkgoHelper()
	ip := fmt.Sprintf("127.77.%d.%d", rand.IntN(255), 1+rand.IntN(254)) // Another test may run on this machine.
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", ip, v1alpha1.DefaultConsumerPort))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cm := &corev1.ConfigMap{}
		err := c.admin.Get(r.Context(), client.ObjectKey{Namespace: namespace, Name: plan.RoutingName("moving")}, cm)
		file, parseErr := routing.Parse([]byte(cm.Data[routing.FileName]))
		if err != nil || parseErr != nil {
			http.Error(w, "nothing is published", http.StatusServiceUnavailable)
			return
		}
		status := agentapi.Status{Ready: true, Datacenter: "ams01", Routing: &agentapi.Routing{
			Ring: file.Ring, UID: file.UID, Generation: file.Generation, LeaderEpoch: file.LeaderEpoch, Stable: agentapi.Ring{Digest: file.Stable.Digest},
		}}
		if file.Candidate != nil {
			status.Candidate = &agentapi.Ring{Digest: file.Candidate.Digest}
		}
		_ = json.NewEncoder(w).Encode(status)
	})}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader", Labels: map[string]string{"app": "reader"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "reader", Image: "reader"}}},
	}
	Expect(c.admin.Create(ctx, pod)).To(Succeed())
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
	Expect(c.admin.Status().Update(ctx, pod)).To(Succeed())
}
