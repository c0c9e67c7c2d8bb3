// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build returns the objects that a kustomization makes, in the order in which they have to be applied.
func build(directory string) []*unstructured.Unstructured {
	GinkgoHelper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), directory)
	Expect(err).NotTo(HaveOccurred())
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		content, err := resource.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		Expect(object.UnmarshalJSON(content)).To(Succeed())
		objects = append(objects, object)
	}
	return objects
}

var _ = Describe("config/default", func() {
	It("installs, and its pods meet the restricted Pod Security level", func(ctx SpecContext) {
		deployment := &appsv1.Deployment{}
		for _, object := range build("../../config/default") {
			By(object.GetKind() + " " + object.GetName())
			if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
				// It would decide about the actions of the other specs; those of test/policy are about that.
				Expect(apply(ctx, object, client.ForceOwnership, client.DryRunAll)).To(Succeed())
				continue
			}
			Expect(apply(ctx, object, client.ForceOwnership)).To(Succeed())
			if object.GetKind() == "Deployment" {
				Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment)).To(Succeed())
			}
		}
		Expect(deployment.Name).To(Equal("ringwright-controller-manager"))

		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: "manager"}}
		pod.Spec = deployment.Spec.Template.Spec
		Expect(api.Create(ctx, pod, client.DryRunAll)).To(Succeed())
		By("leaving a setting out, which the level refuses")
		pod.Spec.Containers[0].SecurityContext.Capabilities = nil
		pod.ResourceVersion = ""
		Expect(api.Create(ctx, pod, client.DryRunAll)).To(MatchError(ContainSubstring("violates PodSecurity")))
	})
})
