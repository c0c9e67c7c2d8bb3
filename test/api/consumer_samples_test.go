// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// documents returns the objects of a sample, in a namespace.
func documents(path, namespace string) []*unstructured.Unstructured {
	GinkgoHelper()
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := decode(document)
		object.SetNamespace(namespace)
		objects = append(objects, object)
	}
	return objects
}

// publishedNames returns the ConfigMaps of the HashRings among the samples.
func publishedNames() map[string]bool {
	GinkgoHelper()
	paths, err := filepath.Glob(filepath.Join(samples, "hashring_*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	names := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		ring := &v1alpha1.HashRing{}
		Expect(yaml.UnmarshalStrict(text, ring)).To(Succeed())
		for _, name := range plan.Names(ring) {
			names[name] = true
		}
	}
	return names
}

var _ = Describe("The samples of consumers", func() {
	var restricted string

	BeforeEach(func(ctx SpecContext) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "restricted-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}}
		Expect(api.Create(ctx, ns)).To(Succeed())
		restricted = ns.Name
	})

	It("run where nothing but restricted pods may", func(ctx SpecContext) {
		paths, err := filepath.Glob(filepath.Join(samples, "consumer_*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(paths)).To(BeNumerically(">=", 5))
		for _, path := range append(paths, filepath.Join(samples, "agent_api_source.yaml")) {
			By(filepath.Base(path))
			for _, object := range documents(path, restricted) {
				if object.GetKind() == "RoleBinding" {
					object.Object["subjects"].([]any)[0].(map[string]any)["namespace"] = restricted
				}
				Expect(apply(ctx, object, client.DryRunAll)).To(Succeed())
				Expect(apply(ctx, object)).To(Succeed())
				if object.GetKind() == "Deployment" {
					checkPod(ctx, object)
				}
			}
		}
	})

	It("are held to that by the API server", func(ctx SpecContext) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: restricted, Name: "privileged"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
			}}},
		}
		Expect(api.Create(ctx, pod)).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)))
	})
})

// checkPod creates the pod of a Deployment, which nobody else does here: Pod Security looks at pods only. All ConfigMaps of a
// ring are mounted as a whole, and none of them is optional.
func checkPod(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment)).To(Succeed())
	template := deployment.Spec.Template
	for key, value := range deployment.Spec.Selector.MatchLabels {
		Expect(template.Labels).To(HaveKeyWithValue(key, value))
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = object.GetNamespace(), object.GetName()
	Expect(api.Create(ctx, pod)).To(Succeed())

	names := publishedNames()
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap != nil && source.ConfigMap.Name != "kube-root-ca.crt" { // The API server adds others.
				Expect(names).To(HaveKey(source.ConfigMap.Name))
				Expect(source.ConfigMap.Optional).To(BeNil())
				if ring, told := template.Labels["ringwright.dev/reads"]; told {
					Expect(source.ConfigMap.Name).To(HavePrefix(ring + "-"))
				}
			}
		}
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		Expect(*container.SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
		Expect(container.Resources.Limits).To(HaveKey(corev1.ResourceMemory))
		for _, mount := range container.VolumeMounts {
			Expect(mount.SubPath + mount.SubPathExpr).To(BeEmpty())
		}
	}
	for _, container := range pod.Spec.InitContainers {
		Expect(container.RestartPolicy).To(Equal(ptr.To(corev1.ContainerRestartPolicyAlways)))
		Expect(container.StartupProbe).NotTo(BeNil())
	}
}
