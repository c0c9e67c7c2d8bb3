// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"encoding/json"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var _ = Describe("A RingMigration under Argo CD", Ordered, func() {
	var migration *v1alpha1.RingMigration
	var manifest *unstructured.Unstructured

	get := func(ctx context.Context) *v1alpha1.RingMigration {
		GinkgoHelper()
		got := &v1alpha1.RingMigration{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(migration), got)).To(Succeed())
		return got
	}
	sync := func(ctx context.Context) error {
		return admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest.DeepCopy()), argoCD)
	}
	// unchanged syncs as self-healing does, and sees that it writes nothing; the operator may write in between.
	unchanged := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			before := get(ctx)
			g.Expect(sync(ctx)).To(Succeed())
			g.Expect(get(ctx).ResourceVersion).To(Equal(before.ResourceVersion))
		}).Should(Succeed())
	}
	// act gives an action as the admin does, and returns it decided.
	act := func(ctx context.Context, kind v1alpha1.ActionType) *v1alpha1.RingMigrationAction {
		GinkgoHelper()
		action := &v1alpha1.RingMigrationAction{
			ObjectMeta: metav1.ObjectMeta{Namespace: migration.Namespace, GenerateName: "act-"},
			Spec: v1alpha1.RingMigrationActionSpec{
				MigrationRef: v1alpha1.RingMigrationReference{Name: migration.Name}, Type: kind,
				Step: &v1alpha1.ActionStep{Token: get(ctx).Status.Token}, Actor: v1alpha1.ActionActor{Username: "admin"},
			},
		}
		Expect(admin.Create(ctx, action)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(action), action)).To(Succeed())
			g.Expect(action.Status.Phase).NotTo(BeEmpty())
		}).Should(Succeed())
		return action
	}

	BeforeAll(func(ctx SpecContext) {
		ring := newRing(newNamespace(ctx), "edge", 3)
		Expect(admin.Create(ctx, ring)).To(Succeed())
		settled(ctx, ring, v1alpha1.ReasonRingPublished)
		migration = &v1alpha1.RingMigration{ObjectMeta: metav1.ObjectMeta{Namespace: ring.Namespace, Name: "edge-to-v3"}}
		manifest = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"ringRef": map[string]any{"name": "edge"},
			"stages": []any{map[string]any{
				"name": "world", "datacenters": map[string]any{"remainder": true},
				"steps": []any{map[string]any{"traffic": "5%", "soak": "1h"}, map[string]any{"traffic": "100%"}},
			}},
			"gates": []any{map[string]any{"name": "agents", "consumers": map[string]any{"maxErrorRatio": "1%"}}},
		}}}
		manifest.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RingMigration"))
		manifest.SetNamespace(migration.Namespace)
		manifest.SetName(migration.Name)
		manifest.SetLabels(map[string]string{trackingLabel: "edge"})
		Expect(sync(ctx)).To(Succeed())
		Eventually(func(g Gomega) {
			got := get(ctx)
			g.Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
			g.Expect(got.Status.Holds).To(HaveExactElements(HaveField("Type", v1alpha1.HoldType("NoCandidate"))))
		}).Should(Succeed())
	})

	It("is not changed by a sync, whatever the operator has written, and actions stay what they are", func(ctx SpecContext) {
		unchanged(ctx)
		Expect(act(ctx, v1alpha1.ActionPause).Status.Phase).To(Equal(v1alpha1.ActionAccepted))
		for range 3 {
			unchanged(ctx)
			Expect(get(ctx).Status.Paused).To(HaveValue(HaveField("By", "admin")))
		}
		Expect(act(ctx, v1alpha1.ActionResume).Status.Phase).To(Equal(v1alpha1.ActionAccepted))
		unchanged(ctx)
		Expect(get(ctx).Status.Paused).To(BeNil())
		again := act(ctx, v1alpha1.ActionResume)
		Expect(again.Status.Phase).To(Equal(v1alpha1.ActionRejected))
		Expect(again.Status.Reason).To(BeEquivalentTo("NotPaused"))
		unchanged(ctx)
		Expect(get(ctx).Generation).To(BeEquivalentTo(1))
	})

	It("has a spec that Argo CD alone writes, and a status and a finalizer that the operator does", func(ctx SpecContext) {
		writers := map[string][]string{}
		for _, entry := range get(ctx).ManagedFields {
			fields := map[string]any{}
			Expect(json.Unmarshal([]byte(entry.FieldsV1.GetRawString()), &fields)).To(Succeed())
			for field := range fields {
				writers[field] = append(writers[field], entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource)
				slices.Sort(writers[field])
			}
		}
		Expect(writers).To(Equal(map[string][]string{
			"f:metadata": {string(argoCD) + " Apply ", v1alpha1.FieldManagerMigration + " Update "},
			"f:spec":     {string(argoCD) + " Apply "},
			"f:status":   {v1alpha1.FieldManagerMigration + " Apply status"},
		}))
		Expect(get(ctx).Labels).To(HaveLen(1))
		Expect(get(ctx).Annotations).To(BeEmpty())
	})

	It("has actions that carry none of what Argo CD tracks by, and that go with it", func(ctx SpecContext) {
		list := &v1alpha1.RingMigrationActionList{}
		Expect(admin.List(ctx, list, client.InNamespace(migration.Namespace))).To(Succeed())
		Expect(list.Items).To(HaveLen(3))
		for _, action := range list.Items {
			Expect(action.Labels).To(BeEmpty())
			Expect(metav1.IsControlledBy(&action, get(ctx))).To(BeTrue())
		}
	})
})
