// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// fullSet is a WeightSet with every field, full to its bounds but for the number of its endpoints.
func fullSet(name string) *v1alpha1.WeightSet {
	return &v1alpha1.WeightSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Policy: v1alpha1.PolicyIdentity{
			Name: strings.Repeat("p", 63), UID: strings.Repeat("u", 64), Tombstone: &metav1.Duration{Duration: 72 * time.Hour}, Ring: strings.Repeat("r", 63),
		},
		Epoch: 4, Holder: strings.Repeat("h", 253), Version: 41, Sets: 100, UpdatedAt: weighedAt, Noise: 5000, TombstoneUntil: &weighedAt,
		Endpoints: []v1alpha1.WeightedEndpoint{
			{
				ID: strings.Repeat("i", 253), Name: strings.Repeat("n", 253), Address: strings.Repeat("a", 253), Port: 65535, Zone: strings.Repeat("z", 63),
				Weight: 1_000_000, Computed: 1_000_000, Utilization: 1 << 40, Integral: -100000, LastError: -5, ReportedAt: &weighedAt,
				Source: v1alpha1.SourceLRS, State: v1alpha1.EndpointGuarded,
			},
			{ID: "b", Weight: 1},
		},
	}
}

var _ = Describe("A WeightSet", func() {
	It("is kept as it is written, and prints what matters of it", func(ctx SpecContext) {
		set := fullSet("kept")
		Expect(api.Create(ctx, set)).To(Succeed())
		read := &v1alpha1.WeightSet{}
		Expect(api.Get(ctx, keyOf(set), read)).To(Succeed())
		want := fullSet("kept")
		want.TypeMeta, want.ObjectMeta = read.TypeMeta, read.ObjectMeta
		Expect(cmp.Diff(want, read)).To(BeEmpty())
		narrow, _ := printedRowOf(ctx, "weightsets", "kept")
		Expect(narrow[:5]).To(Equal([]string{
			"Name=kept", "Policy=" + strings.Repeat("p", 63), "Version=41", "Epoch=4", "Holder=" + strings.Repeat("h", 253),
		}))
	})

	It("holds 1,000 endpoints with all that there is to say of them", func(ctx SpecContext) {
		set := fullSet("full")
		for i := range v1alpha1.MaxWeightSetEndpoints {
			e := set.Endpoints[0]
			e.ID = fmt.Sprintf("%s%04d", e.ID[4:], i)
			set.Endpoints = append(set.Endpoints, e)
		}
		set.Endpoints = set.Endpoints[2:]
		Expect(api.Create(ctx, set)).To(Succeed())
		set.Endpoints = append(set.Endpoints, v1alpha1.WeightedEndpoint{ID: "one more", Weight: 1})
		Expect(api.Update(ctx, set)).To(MatchError(ContainSubstring("endpoints: Too many: 1001: must have at most 1000 items")))
	})

	It("never goes back to a lower epoch", func(ctx SpecContext) {
		set := fullSet("fenced")
		Expect(api.Create(ctx, set)).To(Succeed())
		set.Epoch = 3
		Expect(api.Update(ctx, set)).To(MatchError(ContainSubstring("epoch cannot fall; it is 4, got 3")))
		set.Epoch = 5
		Expect(api.Update(ctx, set)).To(Succeed())
	})
})

var _ = DescribeTable("A WeightSet is refused with", func(ctx SpecContext, set func(*v1alpha1.WeightSet), want string) {
	s := fullSet("bounds")
	Expect(api.Create(ctx, s, client.DryRunAll)).To(Succeed())
	s = fullSet("bounds")
	set(s)
	Expect(api.Create(ctx, s, client.DryRunAll)).To(MatchError(ContainSubstring(want)))
},
	Entry("no policy", func(s *v1alpha1.WeightSet) { s.Policy.Name = "" }, "policy.name: Invalid value"),
	Entry("a policy of 64 characters", func(s *v1alpha1.WeightSet) { s.Policy.Name += "p" }, "policy.name: Too long: may not be more than 63"),
	Entry("a UID of 65 characters", func(s *v1alpha1.WeightSet) { s.Policy.UID += "u" }, "policy.uid: Too long: may not be more than 64"),
	Entry("a ring of 64 characters", func(s *v1alpha1.WeightSet) { s.Policy.Ring += "r" }, "policy.ring: Too long: may not be more than 63"),
	Entry("a negative epoch", func(s *v1alpha1.WeightSet) { s.Epoch = -1 }, "epoch: Invalid value: -1"),
	Entry("a holder of 254 characters", func(s *v1alpha1.WeightSet) { s.Holder += "h" }, "holder: Too long: may not be more than 253"),
	Entry("a negative version", func(s *v1alpha1.WeightSet) { s.Version = -1 }, "version: Invalid value: -1"),
	Entry("no sets", func(s *v1alpha1.WeightSet) { s.Sets = 0 }, "sets: Invalid value: 0"),
	Entry("101 sets", func(s *v1alpha1.WeightSet) { s.Sets = 101 }, "sets: Invalid value: 101"),
	Entry("negative noise", func(s *v1alpha1.WeightSet) { s.Noise = -1 }, "noise: Invalid value: -1"),
	Entry("an endpoint without an ID", func(s *v1alpha1.WeightSet) { s.Endpoints[0].ID = "" }, "endpoints[0].id: Invalid value"),
	Entry("an ID of 254 characters", func(s *v1alpha1.WeightSet) { s.Endpoints[0].ID += "i" }, "endpoints[0].id: Too long: may not be more than 253"),
	Entry("a pod of 254 characters", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Name += "n" }, "endpoints[0].name: Too long: may not be more than 253"),
	Entry("an address of 254 characters", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Address += "a" }, "endpoints[0].address: Too long: may not be more than 253"),
	Entry("port 65,536", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Port = 65536 }, "endpoints[0].port: Invalid value: 65536"),
	Entry("a negative port", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Port = -1 }, "endpoints[0].port: Invalid value: -1"),
	Entry("a zone of 64 characters", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Zone += "z" }, "endpoints[0].zone: Too long: may not be more than 63"),
	Entry("weight 0", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Weight = 0 }, "endpoints[0].weight: Invalid value: 0"),
	Entry("weight 1,000,001", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Weight++ }, "endpoints[0].weight: Invalid value: 1000001"),
	Entry("a negative computed weight", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Computed = -1 }, "endpoints[0].computed: Invalid value: -1"),
	Entry("computed weight 1,000,001", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Computed++ }, "endpoints[0].computed: Invalid value: 1000001"),
	Entry("a negative utilisation", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Utilization = -1 }, "endpoints[0].utilization: Invalid value: -1"),
	Entry("a source that there is not", func(s *v1alpha1.WeightSet) { s.Endpoints[0].Source = "SNMP" }, `endpoints[0].source: Unsupported value: "SNMP"`),
	Entry("a state that there is not", func(s *v1alpha1.WeightSet) { s.Endpoints[0].State = "Happy" }, `endpoints[0].state: Unsupported value: "Happy"`),
)

var _ = DescribeTable("The load weights of a HashRing are refused with", func(ctx SpecContext, set func(*v1alpha1.LoadWeights), want string) {
	Expect(apply(ctx, hashRing("loaded", "spec: {}"))).To(Succeed())
	ring := get(ctx, "loaded")
	ring.Status.ObservedGeneration = 1
	ring.Status.LoadWeights = &v1alpha1.LoadWeights{
		Policy: strings.Repeat("p", 63), Version: 41, Applied: true, TombstoneUntil: &weighedAt, Factors: items(4096, func(i int) v1alpha1.LoadFactor {
			return v1alpha1.LoadFactor{ID: fmt.Sprintf("%s%04d", strings.Repeat("i", 316), i), Factor: 1000 + int32(i%2)*79000}
		}),
	}
	full := ring.Status.LoadWeights.DeepCopy()
	if want == "" { // The largest that there can be is about 1.4 MB.
		full.Factors = full.Factors[:2048]
		ring.Status.LoadWeights = full.DeepCopy()
		Expect(api.Status().Update(ctx, ring)).To(Succeed())
		Expect(cmp.Diff(full, get(ctx, "loaded").Status.LoadWeights)).To(BeEmpty())
		return
	}
	set(ring.Status.LoadWeights)
	Expect(api.Status().Update(ctx, ring)).To(MatchError(ContainSubstring("status.loadWeights." + want)))
},
	Entry("nothing that they have", nil, ""),
	Entry("no policy", func(l *v1alpha1.LoadWeights) { l.Policy = "" }, "policy: Invalid value"),
	Entry("a policy of 64 characters", func(l *v1alpha1.LoadWeights) { l.Policy += "p" }, "policy: Too long: may not be more than 63"),
	Entry("a negative version", func(l *v1alpha1.LoadWeights) { l.Version = -1 }, "version: Invalid value: -1"),
	Entry("4,097 factors", func(l *v1alpha1.LoadWeights) { l.Factors = append(l.Factors, l.Factors[0]) }, "factors: Too many: 4097: must have at most 4096 items"),
	Entry("a backend of 321 characters", func(l *v1alpha1.LoadWeights) { l.Factors[0].ID += "i" }, "factors[0].id: Too long: may not be more than 320"),
	Entry("a factor below a tenth", func(l *v1alpha1.LoadWeights) { l.Factors[0].Factor = 999 }, "factors[0].factor: Invalid value: 999"),
	Entry("a factor above 8", func(l *v1alpha1.LoadWeights) { l.Factors[0].Factor = 80001 }, "factors[0].factor: Invalid value: 80001"),
)
