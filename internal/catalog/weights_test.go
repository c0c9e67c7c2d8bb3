// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
)

func policyOf(namespace, name string, target v1alpha1.WeightTarget) v1alpha1.WeightPolicy {
	return v1alpha1.WeightPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}, Spec: v1alpha1.WeightPolicySpec{TargetRef: target},
	}
}

func setOf(namespace, policy string, change func(*v1alpha1.WeightSet)) v1alpha1.WeightSet {
	s := v1alpha1.WeightSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: policy + "-0"},
		Policy:     v1alpha1.PolicyIdentity{Name: policy, UID: "uid-" + policy}, Version: 7, Sets: 1,
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestWithWeights(t *testing.T) {
	until := func(hour int) *metav1.Time {
		return ptr.To(metav1.NewTime(time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC)))
	}
	measured := policyOf("shop", "checkout", v1alpha1.WeightTarget{Kind: v1alpha1.TargetService, Name: "checkout", Port: ptr.To(intstr.FromString("grpc"))})
	measured.Status = v1alpha1.WeightPolicyStatus{
		Endpoints:  &v1alpha1.EndpointCounts{Total: 9},
		Conditions: []metav1.Condition{{Type: "Converged", Reason: "Converging"}, {Type: "Ready", Reason: "Shadow"}},
	}
	policies := []v1alpha1.WeightPolicy{
		measured, policyOf("cdn", "edge", v1alpha1.WeightTarget{Kind: v1alpha1.TargetHashRing, Name: "edge"}),
		policyOf("cdn", "api", v1alpha1.WeightTarget{Name: "api", Port: ptr.To(intstr.FromInt32(80))}),
	}
	sets := []v1alpha1.WeightSet{
		setOf("shop", "checkout", func(s *v1alpha1.WeightSet) { s.TombstoneUntil = until(1) }), // It is there again.
		setOf("cdn", "checkout", nil), // The balancer has not looked yet.
		setOf("shop", "old", func(s *v1alpha1.WeightSet) { s.TombstoneUntil, s.Sets = until(2), 2 }),
		setOf("shop", "old", func(s *v1alpha1.WeightSet) { s.TombstoneUntil, s.Sets, s.Version = until(3), 2, 6 }),
		setOf("cdn", "ring", func(s *v1alpha1.WeightSet) { s.TombstoneUntil, s.Policy.Ring = until(4), "edge" }),
	}
	want := catalog.Catalog{
		WeightPolicies: []catalog.WeightPolicy{
			{Namespace: "cdn", Name: "api", UID: "uid-api", Target: "Service/api:80"},
			{Namespace: "cdn", Name: "edge", UID: "uid-edge", Target: "HashRing/edge"},
			{Namespace: "shop", Name: "checkout", UID: "uid-checkout", Target: "Service/checkout:grpc", Endpoints: 9, State: "Shadow"},
		},
		WeightTombstones: []catalog.WeightTombstone{
			{Namespace: "cdn", Name: "checkout", UID: "uid-checkout", Version: 7, Sets: 1},
			{Namespace: "cdn", Name: "ring", UID: "uid-ring", Ring: "edge", Version: 7, Sets: 1, Until: "2026-03-01T04:00:00Z"},
			{Namespace: "shop", Name: "old", UID: "uid-old", Version: 7, Sets: 2, Until: "2026-03-01T03:00:00Z"},
		},
	}
	for range 2 {
		if diff := cmp.Diff(want, catalog.Catalog{}.WithWeights(policies, sets)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		slices.Reverse(policies)
		slices.Reverse(sets)
	}
	file, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"apiVersion":"ringwright.dev/v1alpha1","kind":"Catalog","rings":[],"tombstones":[],"weightPolicies":[
{"namespace":"cdn","name":"api","uid":"uid-api","target":"Service/api:80"},
{"namespace":"cdn","name":"edge","uid":"uid-edge","target":"HashRing/edge"},
{"namespace":"shop","name":"checkout","uid":"uid-checkout","target":"Service/checkout:grpc","endpoints":9,"state":"Shadow"}
],"weightTombstones":[
{"namespace":"cdn","name":"checkout","uid":"uid-checkout","version":7,"sets":1},
{"namespace":"cdn","name":"ring","uid":"uid-ring","ring":"edge","version":7,"sets":1,"until":"2026-03-01T04:00:00Z"},
{"namespace":"shop","name":"old","uid":"uid-old","version":7,"sets":2,"until":"2026-03-01T03:00:00Z"}
]}
`
	if diff := cmp.Diff(text, string(file)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	read, err := catalog.Parse(file)
	want.Rings, want.Tombstones = []catalog.Ring{}, []catalog.Tombstone{}
	if err != nil || !cmp.Equal(want, read) {
		t.Errorf("read as %+v, %v", read, err)
	}
}

// TestParseOldCatalog: a catalog from before there were WeightPolicies is read.
func TestParseOldCatalog(t *testing.T) {
	old, err := catalog.Parse([]byte(`{"apiVersion":"ringwright.dev/v1alpha1","kind":"Catalog","rings":[
{"namespace":"cdn","name":"edge","uid":"2"}
],"tombstones":[]}`))
	if err != nil || len(old.Rings) != 1 || old.WeightPolicies != nil {
		t.Errorf("%+v, %v", old, err)
	}
}

// TestPackWeights: policies count in what a ConfigMap takes.
func TestPackWeights(t *testing.T) {
	c := large(20)
	for range 300_000 {
		c.WeightPolicies = append(c.WeightPolicies, catalog.WeightPolicy{Name: strings.Repeat("n", 60)})
	}
	for i := range c.WeightPolicies {
		c.WeightPolicies[i].UID = large(1).Rings[0].UID
		c.WeightPolicies[i].Name = time.Duration(uint64(i+1) * 0x9e3779b97f4a7c15 >> 1).String()
	}
	if _, err := c.Pack(); err == nil || !strings.Contains(err.Error(), "the catalog of 20 rings, 0 tombstones and 300000 WeightPolicies has") {
		t.Errorf("%v", err)
	}
}
