// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/testenv"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// keys is how many objects the client of testdata/consumer.yaml asks for, datacenters are where there is one.
const keys = 500

var datacenters = []string{"dc1", "dc2"}

// world is a namespace with a HashRing, its backends, and consumers that ask for objects all the time.
type world struct {
	namespace string
}

// newWorld makes one, and deletes it at the end of the spec: then nothing may be left of it.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w := &world{namespace: "e2e-" + rand.String(5)}
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: w.namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			GinkgoWriter.Println(podsOf(ctx, w.namespace))
			GinkgoWriter.Println(podsOf(ctx, systemNamespace))
		}
		w.delete(ctx)
	})
	w.apply(ctx, "backends.yaml", nil)
	w.waitBackends(ctx, 4)
	w.apply(ctx, "ring.yaml", nil)
	w.waitReady(ctx, 4)
	return w
}

// traffic starts the consumers, and waits until each has asked for every object.
func (w *world) traffic(ctx context.Context) {
	GinkgoHelper()
	for _, datacenter := range datacenters {
		w.apply(ctx, "consumer.yaml", map[string]string{"DATACENTER": datacenter})
	}
	for _, datacenter := range datacenters {
		waitRolledOut(ctx, client.ObjectKey{Namespace: w.namespace, Name: "consumer-" + datacenter})
	}
	Eventually(func(g Gomega) {
		for _, s := range w.stats(ctx) {
			g.Expect(s.Owners).NotTo(ContainElement(""))
		}
	}).Should(Succeed())
}

// apply applies a file of testdata, with ${NAME} in it replaced; $$ is a dollar.
func (w *world) apply(ctx context.Context, name string, variables map[string]string) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	Expect(err).NotTo(HaveOccurred())
	expanded := os.Expand(string(text), func(variable string) string {
		if variable == "$" {
			return "$"
		}
		return variables[variable]
	})
	for document := range strings.SplitSeq(expanded, "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(Succeed())
		object.SetNamespace(w.namespace)
		Expect(testenv.Apply(ctx, admin, object)).To(Succeed())
	}
}

// delete deletes the namespace and all that is in it, as an administrator would.
func (w *world) delete(ctx context.Context) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	Expect(client.IgnoreNotFound(admin.Delete(ctx, namespace))).To(Succeed())
	Eventually(func() bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(namespace), namespace))
	}).Should(BeTrue(), "namespace %s does not go: %v", w.namespace, namespace.Status.Conditions)
}

// scale changes how many backends there are, without waiting.
func (w *world) scale(ctx context.Context, replicas int) {
	GinkgoHelper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cache"}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	Expect(admin.Patch(ctx, set, patch)).To(Succeed())
}

func (w *world) waitBackends(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		set := &appsv1.StatefulSet{}
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "cache"}, set)).To(Succeed())
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		g.Expect([]int32{set.Status.Replicas, set.Status.UpdatedReplicas, set.Status.ReadyReplicas}).To(HaveEach(ptr.Deref(set.Spec.Replicas, 0)), podsOf(ctx, w.namespace))
		g.Expect(set.Status.ReadyReplicas).To(BeEquivalentTo(n))
	}).Should(Succeed())
}

func (w *world) hashRing(ctx context.Context) *v1alpha1.HashRing {
	GinkgoHelper()
	ring := &v1alpha1.HashRing{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "edge"}, ring)).To(Succeed())
	return ring
}

// waitReady waits until the ring is published with n backends.
func (w *world) waitReady(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		ring := w.hashRing(ctx)
		g.Expect(ring.Status.Conditions).To(ContainElement(And(
			HaveField("Type", string(v1alpha1.ConditionReady)), HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", ring.Generation))))
		loaded, close, err := w.load(ctx, "")
		g.Expect(err).NotTo(HaveOccurred())
		defer close()
		g.Expect(loaded.Ring().Stats().Backends).To(Equal(n))
	}).Should(Succeed())
}

// load reads the published ring as a consumer in a datacenter would, and returns what ends that.
func (w *world) load(ctx context.Context, datacenter string) (*ringclient.State, func(), error) {
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"edge-routing", "edge-a", "edge-b"} {
		cm := &corev1.ConfigMap{}
		if err := admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, cm); err != nil {
			return nil, nil, err
		}
		for file, text := range cm.Data {
			cm.BinaryData = with(cm.BinaryData, file, []byte(text))
		}
		for file, data := range cm.BinaryData {
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
				return nil, nil, err
			}
		}
	}
	c, err := ringclient.Open(dir, ringclient.Options{Datacenter: datacenter})
	if err != nil {
		return nil, nil, err
	}
	return c.State(), func() { _ = c.Close(); _ = os.RemoveAll(dir) }, nil
}

func with(m map[string][]byte, key string, value []byte) map[string][]byte {
	if m == nil {
		m = map[string][]byte{}
	}
	m[key] = value
	return m
}

// stats are what the client of a consumer counts; see app.
type stats struct {
	Requests, Failed, Moved int
	Failures, Owners        []string
}

// consumers returns the pods that ask, by their datacenters.
func (w *world) consumers(ctx context.Context) map[string]*corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(w.namespace), client.MatchingLabels{"app": "consumer"})).To(Succeed())
	found := map[string]*corev1.Pod{}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && p.Status.PodIP != "" {
			found[p.Labels["datacenter"]] = p
		}
	}
	return found
}

// stats asks the clients.
func (w *world) stats(ctx context.Context) map[string]stats {
	GinkgoHelper()
	all := map[string]stats{}
	for datacenter, pod := range w.consumers(ctx) {
		var s stats
		Eventually(func() error { return get(ctx, "http://"+pod.Status.PodIP+":8090/stats", &s) }, 20*time.Second).Should(Succeed(), podsOf(ctx, w.namespace))
		all[datacenter] = s
	}
	Expect(all).To(HaveLen(len(datacenters)))
	return all
}

// get reads JSON.
func get(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
