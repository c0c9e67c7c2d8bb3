// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// wantDefaults is what the schema makes of a HashRing with backends a and b only.
func wantDefaults() v1alpha1.HashRingSpec {
	return v1alpha1.HashRingSpec{
		Algorithm: v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV2, PointsPerWeight: 160, WeightUnit: 1},
		Identity:  v1alpha1.IdentityAddress,
		Backends: []v1alpha1.Backend{
			{Name: "a", Address: "10.0.0.1", Port: ptr.To[int32](80), Weight: ptr.To[int32](1)},
			{Name: "b", Address: "10.0.0.2", Port: ptr.To[int32](80), Weight: ptr.To[int32](1)},
		},
		Publication: v1alpha1.Publication{
			MinInterval: &metav1.Duration{Duration: 5 * time.Second}, Chunks: 1, Encoding: v1alpha1.EncodingAuto,
		},
		Membership: v1alpha1.Membership{
			MinBackends: 1, JoinDelay: &metav1.Duration{}, LeaveDelay: &metav1.Duration{Duration: 5 * time.Minute}, MaxRemoved: "50%",
		},
		ChangePolicy: v1alpha1.ChangeMigrate,
		HistoryLimit: ptr.To[int32](10),
		Deletion:     v1alpha1.Deletion{Tombstone: &metav1.Duration{Duration: 72 * time.Hour}},
	}
}

var _ = Describe("The defaults", func() {
	It("complete a HashRing of five lines", func(ctx SpecContext) {
		Expect(apply(ctx, decode(`
apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: five-lines}
spec:
  backends: [{name: a, address: 10.0.0.1, port: 80}, {name: b, address: 10.0.0.2, port: 80}]`))).To(Succeed())
		stored := get(ctx, "five-lines")
		Expect(cmp.Diff(wantDefaults(), stored.Spec)).To(BeEmpty())
		Expect(stored.Status.ObservedGeneration).To(BeEquivalentTo(-1))
	})

	It("complete an object that a Go program creates with zero values", func(ctx SpecContext) {
		ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "zero-values"}}
		ring.Spec.Backends = []v1alpha1.Backend{
			{Name: "a", Address: "10.0.0.1", Port: ptr.To[int32](80)},
			{Name: "b", Address: "10.0.0.2", Port: ptr.To[int32](80)},
		}
		Expect(api.Create(ctx, ring)).To(Succeed())
		Expect(cmp.Diff(wantDefaults(), ring.Spec)).To(BeEmpty())
	})

	It("complete a part of algorithm and leave a drained backend drained", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing("partial", `
spec:
  algorithm: {version: V1}
  publication: {}
  backends: [{name: a, address: 10.0.0.1, port: 80, weight: 0}]`))).To(Succeed())
		spec := get(ctx, "partial").Spec
		Expect(spec.Algorithm).To(Equal(v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV1, PointsPerWeight: 160, WeightUnit: 1}))
		Expect(spec.Backends[0].Weight).To(HaveValue(BeEquivalentTo(0)))
		Expect(spec.Publication.MinInterval).To(HaveValue(Equal(metav1.Duration{Duration: 5 * time.Second})))
	})

	It("complete a source, a part of membership and an empty deletion", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing("source", `
spec:
  backendsFrom: [{service: {name: cache}}, {service: {name: other, port: 80}, weight: 0}]
  membership: {minBackends: 3, leaveDelay: 0s}
  deletion: {}`))).To(Succeed())
		spec := get(ctx, "source").Spec
		port := intstr.FromInt32(80)
		Expect(cmp.Diff([]v1alpha1.BackendSource{
			{Service: v1alpha1.ServicePort{Name: "cache"}, PreferredIPFamily: v1alpha1.IPv4, Weight: ptr.To[int32](1)},
			{Service: v1alpha1.ServicePort{Name: "other", Port: &port}, PreferredIPFamily: v1alpha1.IPv4, Weight: ptr.To[int32](0)},
		}, spec.BackendsFrom)).To(BeEmpty())
		Expect(cmp.Diff(v1alpha1.Membership{
			MinBackends: 3, JoinDelay: &metav1.Duration{}, LeaveDelay: &metav1.Duration{}, MaxRemoved: "50%",
		}, spec.Membership)).To(BeEmpty())
		Expect(spec.Deletion.Tombstone).To(HaveValue(Equal(metav1.Duration{Duration: 72 * time.Hour})))
	})
})
