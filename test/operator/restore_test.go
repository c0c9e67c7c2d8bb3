// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/controller"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/ringcache"
)

var _ = Describe("restoration", func() {
	var r *v1alpha1.HashRing
	var before map[string]*corev1.ConfigMap

	BeforeEach(func(ctx SpecContext) {
		r = newRing(newNamespace(ctx), "restored", 5)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(6) })
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		before = published(ctx, r)
	})

	// restored waits until everything is as it was: payload, labels, annotations, no owner.
	restored := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			for part, want := range before {
				got := &corev1.ConfigMap{}
				g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(want), got)).To(Succeed())
				g.Expect(payload(got)).To(Equal(payload(want)), part)
				g.Expect(got.Labels).To(Equal(want.Labels), part)
				g.Expect(got.OwnerReferences).To(BeEmpty(), part)
				g.Expect(got.Annotations).To(Equal(want.Annotations), part)
			}
		}).Should(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Active.Revision).To(Equal(int64(2)))
		Expect(got.Status.Routing.Generation).To(Equal(int64(2)))
	}

	change := func(ctx context.Context, part string, change func(*corev1.ConfigMap)) {
		GinkgoHelper()
		cm := before[part].DeepCopy()
		change(cm)
		Expect(admin.Update(ctx, cm, client.FieldOwner("somebody"))).To(Succeed())
	}

	DescribeTable("brings back what was", func(ctx SpecContext, damage func(context.Context)) {
		damage(ctx)
		restored(ctx)
	},
		Entry("deleted, the snapshot", func(ctx context.Context) { Expect(admin.Delete(ctx, before["a"])).To(Succeed()) }),
		Entry("deleted, everything", func(ctx context.Context) {
			for _, cm := range before {
				Expect(admin.Delete(ctx, cm)).To(Succeed())
			}
		}),
		Entry("edited, the snapshot", func(ctx context.Context) {
			change(ctx, "a", func(cm *corev1.ConfigMap) { cm.BinaryData["ring-a.snap"][100] ^= 1 })
		}),
		Entry("edited, the routing file", func(ctx context.Context) {
			change(ctx, "routing", func(cm *corev1.ConfigMap) { cm.Data["routing.json"] = "{}" })
		}),
		Entry("emptied", func(ctx context.Context) {
			change(ctx, "b", func(cm *corev1.ConfigMap) { cm.BinaryData = nil })
		}),
		Entry("moved from binaryData to data", func(ctx context.Context) {
			change(ctx, "a", func(cm *corev1.ConfigMap) { cm.BinaryData, cm.Data = nil, map[string]string{"ring-a.snap": "text"} })
		}),
		Entry("added to", func(ctx context.Context) {
			change(ctx, "routing", func(cm *corev1.ConfigMap) {
				cm.Data["extra"], cm.BinaryData = "x", map[string][]byte{"more": []byte("y")}
			})
		}),
		Entry("added to, with the value that takes it over", func(ctx context.Context) {
			change(ctx, "routing", func(cm *corev1.ConfigMap) { cm.Data["extra"] = "removed by ringwright from version 1" })
		}),
		Entry("edited, with digests that fit", func(ctx context.Context) {
			change(ctx, "routing", func(cm *corev1.ConfigMap) {
				cm.Data["routing.json"] = "{}"
				cm.Annotations[v1alpha1.AnnotationContentDigest] = plan.ContentDigest(cm.Data, cm.BinaryData)
			})
		}),
		Entry("given another revision", func(ctx context.Context) {
			change(ctx, "a", func(cm *corev1.ConfigMap) { cm.Annotations[v1alpha1.AnnotationRevision] = "99" })
		}),
		Entry("given the largest revision", func(ctx context.Context) {
			change(ctx, "a", func(cm *corev1.ConfigMap) { cm.Annotations[v1alpha1.AnnotationRevision] = "9223372036854775807" })
		}),
		Entry("given another generation", func(ctx context.Context) {
			change(ctx, "routing", func(cm *corev1.ConfigMap) { cm.Annotations[v1alpha1.AnnotationGeneration] = "99" })
		}),
		Entry("stripped of annotations", func(ctx context.Context) {
			change(ctx, "a", func(cm *corev1.ConfigMap) { cm.Annotations = nil })
		}),
		Entry("stripped of its labels, and with that out of the operator's sight", func(ctx context.Context) {
			change(ctx, "routing", func(cm *corev1.ConfigMap) { cm.Labels = nil })
		}),
		Entry("owned, as earlier versions had it", func(ctx context.Context) {
			change(ctx, "routing", func(cm *corev1.ConfigMap) { cm.OwnerReferences = []metav1.OwnerReference{ownedBy(r)} })
		}),
		Entry("owned, as earlier versions had it, and stripped of labels and annotations", func(ctx context.Context) {
			change(ctx, "a", func(cm *corev1.ConfigMap) {
				cm.OwnerReferences, cm.Labels, cm.Annotations = []metav1.OwnerReference{ownedBy(r)}, nil, nil
			})
		}),
		Entry("owned by somebody else", func(ctx context.Context) {
			change(ctx, "b", func(cm *corev1.ConfigMap) {
				cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "other", UID: "other-uid", Controller: ptr.To(true)}}
			})
		}),
		Entry("stripped of the UID of its HashRing", func(ctx context.Context) {
			change(ctx, "b", func(cm *corev1.ConfigMap) { delete(cm.Annotations, v1alpha1.AnnotationRingUID) })
		}),
		Entry("given the UID of another HashRing", func(ctx context.Context) {
			change(ctx, "b", func(cm *corev1.ConfigMap) { cm.Annotations[v1alpha1.AnnotationRingUID] = "earlier" })
		}),
		Entry("given another tombstone", func(ctx context.Context) {
			change(ctx, "routing", func(cm *corev1.ConfigMap) { cm.Annotations[v1alpha1.AnnotationTombstone] = "0s" })
		}),
		Entry("marked as if its HashRing were gone", func(ctx context.Context) {
			change(ctx, "routing", func(cm *corev1.ConfigMap) {
				cm.Annotations[v1alpha1.AnnotationTombstoneUntil] = "2001-01-01T00:00:00Z"
			})
		}),
	)
})

// ownedBy is the owner reference that earlier versions of the operator gave to what they published.
func ownedBy(r *v1alpha1.HashRing) metav1.OwnerReference {
	return *metav1.NewControllerRef(r, v1alpha1.GroupVersion.WithKind("HashRing"))
}

// countedWrites is what a reconcile wrote.
type countedWrites struct {
	writes []string
	result ctrl.Result
	err    error
}

// built keeps what reconciles by hand have built: they are many, and build the same.
var built = ringcache.New(plan.MaxPoints)

// reconcileOnce reconciles r with a reconciler of its own that writes down what it writes. fail, if not nil, may make a
// write fail before it reaches the API server.
func reconcileOnce(ctx context.Context, r *v1alpha1.HashRing, fail func(n int) error) *countedWrites {
	GinkgoHelper()
	return reconcileWith(ctx, r, built, fail)
}

// reconcileWith is reconcileOnce by a reconciler that may have built something before.
func reconcileWith(ctx context.Context, r *v1alpha1.HashRing, rings *ringcache.Cache, fail func(n int) error) *countedWrites {
	GinkgoHelper()
	return reconcileThrough(ctx, admin, r, rings, fail)
}

// reconcileBlind is reconcileOnce by a reconciler whose cache does not have r.
func reconcileBlind(ctx context.Context, r *v1alpha1.HashRing) *countedWrites {
	GinkgoHelper()
	blind := interceptor.NewClient(admin, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if _, ok := object.(*v1alpha1.HashRing); ok {
				return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("hashrings").GroupResource(), key.Name)
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
	return reconcileThrough(ctx, blind, r, built, nil)
}

func reconcileThrough(
	ctx context.Context, cluster client.WithWatch, r *v1alpha1.HashRing, rings *ringcache.Cache, fail func(n int) error,
) *countedWrites {
	GinkgoHelper()
	counted := &countedWrites{}
	count := func(what string) error {
		counted.writes = append(counted.writes, what)
		if fail == nil {
			return nil
		}
		return fail(len(counted.writes))
	}
	c := interceptor.NewClient(cluster, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			if err := count("create " + object.GetName()); err != nil {
				return err
			}
			return c.Create(ctx, object, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := count("apply"); err != nil {
				return err
			}
			return c.Apply(ctx, object, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := count("patch " + object.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if err := count("delete " + object.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, object, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, object runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			if err := count("apply " + sub); err != nil {
				return err
			}
			return c.SubResource(sub).Apply(ctx, object, opts...)
		},
	})
	reconciler := controller.NewHashRingReconciler(c, admin, rings, events.NewFakeRecorder(100), clock.RealClock{})
	counted.result, counted.err = reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r)})
	return counted
}
