// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/testenv"
)

// install applies a kustomization with the image of the tests, and waits until all of its Deployments are there.
func install(ctx context.Context, dir string) {
	GinkgoHelper()
	objects, err := testenv.Kustomize(dir)
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		setImage(object, image)
		Expect(testenv.Apply(ctx, admin, object)).To(Succeed())
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			waitRolledOut(ctx, client.ObjectKeyFromObject(object))
		}
	}
}

// setImage puts an image in the place of the one that is named "ringwright" until somebody says where it is.
func setImage(object *unstructured.Unstructured, name string) {
	GinkgoHelper()
	if object.GetKind() != "Deployment" {
		return
	}
	containers, found, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	for _, c := range containers {
		c.(map[string]any)["image"] = name
	}
	Expect(unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers")).To(Succeed())
}

// waitRolledOut waits until a Deployment is what was asked for, as kubectl rollout status does.
func waitRolledOut(ctx context.Context, key client.ObjectKey) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		d := &appsv1.Deployment{}
		g.Expect(admin.Get(ctx, key, d)).To(Succeed())
		wanted := ptr.Deref(d.Spec.Replicas, 1)
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect([]int32{d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas}).To(HaveEach(wanted), "%s: %s", key, podsOf(ctx, key.Namespace))
	}, 3*time.Minute).Should(Succeed())
}

// podsOf says how the pods of a namespace are, for the text of a failure.
func podsOf(ctx context.Context, namespace string) string {
	pods := &corev1.PodList{}
	if err := admin.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return err.Error()
	}
	text := ""
	for _, p := range pods.Items {
		text += fmt.Sprintf("\n%s %s", p.Name, p.Status.Phase)
		for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			text += fmt.Sprintf(" %s: ready %v, restarts %d %v", c.Name, c.Ready, c.RestartCount, c.State)
		}
	}
	return text
}

// changeOperator changes the Deployment of the operator and waits until it is so.
func changeOperator(ctx context.Context, change func(*appsv1.DeploymentSpec)) {
	GinkgoHelper()
	key := client.ObjectKey{Namespace: systemNamespace, Name: operatorName}
	Eventually(func() error {
		d := &appsv1.Deployment{}
		if err := admin.Get(ctx, key, d); err != nil {
			return err
		}
		change(&d.Spec)
		return admin.Update(ctx, d)
	}).Should(Succeed())
	waitRolledOut(ctx, key)
}
