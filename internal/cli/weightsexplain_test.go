// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func explainWeights(t *testing.T, live livePolicy, endpoint string, f format) string {
	t.Helper()
	var out bytes.Buffer
	o := &weightsExplainOptions{streams: genericiooptions.IOStreams{Out: &out}, output: &formatFlag{value: f}}
	if err := o.run(t.Context(), live, endpoint); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWeightsExplain(t *testing.T) {
	live := checkout(t, withSets(checkoutPolicy())...)
	assertGolden(t, "weights-explain", explainWeights(t, live, "", formatTable))
	assertGolden(t, "weights-explain-json", explainWeights(t, live, "checkout-1", formatJSON))
	var all strings.Builder
	for i := range 6 {
		fmt.Fprintf(&all, "%s\n", explainWeights(t, live, fmt.Sprintf("checkout-%d", i), formatTable))
	}
	for _, name := range []string{"[fd00::6]:8080", "10.0.0.7:8080"} {
		fmt.Fprintf(&all, "%s\n", explainWeights(t, live, name, formatTable))
	}
	assertGolden(t, "weights-explain-endpoints", all.String())
	o := &weightsExplainOptions{output: &formatFlag{value: formatTable}}
	wantError(t, o.run(t.Context(), live, "chekout-1"), `WeightPolicy shop/checkout has no endpoint "chekout-1": did you mean checkout-1?`)
	wantError(t, o.run(t.Context(), live, "something else"), "kubectl hashring weights status checkout -n shop lists them")
}

func TestWeightsExplainGood(t *testing.T) {
	p := checkoutPolicy()
	p.Status.Conditions = p.Status.Conditions[:2]
	p.Status.Rollout.Percent, p.Status.Sources = "100%", nil
	got := explainWeights(t, checkout(t, p), "", formatTable)
	wantContains(t, got, "All conditions are as they should be.")
	if strings.Contains(got, "With all of the computed weights") {
		t.Error(got)
	}
}

// TestWeightsExplainNext: what keeps a weight whatever the load is said.
func TestWeightsExplainNext(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.WeightPolicy){
		"Next: nothing, until the pin is taken away.": func(p *v1alpha1.WeightPolicy) {
			p.Annotations = map[string]string{v1alpha1.AnnotationPinnedWeights: "3"}
		},
		"that of revision 3, which the weights are pinned to; the controller has 0.2000 for it.": func(p *v1alpha1.WeightPolicy) { p.Status.Weights.Pinned = 3 },
		"Next: nothing, while spec.suspend is true.":                                             func(p *v1alpha1.WeightPolicy) { p.Spec.Suspend = true },
		"Next: nothing, since strategy Equal does not follow the load.":                          func(p *v1alpha1.WeightPolicy) { p.Spec.Strategy.Type = v1alpha1.StrategyEqual },
		"Next: its weight changes when the load has been measured.":                              func(p *v1alpha1.WeightPolicy) { p.Status.MaxOverAverage = "" },
		"Next: its weight falls, as long as it uses more than the mean":                          func(*v1alpha1.WeightPolicy) {},
	} {
		p := checkoutPolicy()
		change(p)
		wantContains(t, explainWeights(t, checkout(t, withSets(p)...), "checkout-1", formatTable), want)
	}
}

func TestWeightsExplainRing(t *testing.T) {
	ring := func(change func(*v1alpha1.HashRingStatus)) *v1alpha1.HashRing {
		r := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "edge-cache"}}
		change(&r.Status)
		return r
	}
	for want, r := range map[string]*v1alpha1.HashRing{
		"note: whether HashRing edge-cache has the weights cannot be told": nil,
		"note: HashRing edge-cache has none of these weights yet":          ring(func(*v1alpha1.HashRingStatus) {}),
		"note: HashRing edge-cache has version 7 as factors of its backends' weights": ring(func(s *v1alpha1.HashRingStatus) {
			s.LoadWeights = &v1alpha1.LoadWeights{Policy: "edge", Version: 7, Applied: true}
		}),
		"note: HashRing edge-cache knows version 7 and has not published it yet":     ring(func(s *v1alpha1.HashRingStatus) { s.LoadWeights = &v1alpha1.LoadWeights{Policy: "edge", Version: 7} }),
		"note: RingMigration move has the ring: its factors stay until that is over": ring(func(s *v1alpha1.HashRingStatus) { s.Migration = &v1alpha1.RingLock{Name: "move"} }),
		"note: CoarseWeights: 2 of 4 backends": ring(func(s *v1alpha1.HashRingStatus) {
			s.Warnings = []v1alpha1.Warning{{Reason: v1alpha1.WarningCoarseWeights, Message: "2 of 4 backends"}}
		}),
		"note: HashRing edge-cache has none of these weights yet\n": ring(func(s *v1alpha1.HashRingStatus) {
			s.LoadWeights = &v1alpha1.LoadWeights{Policy: "other", Applied: true}
		}),
		"It balances HashRing/edge-cache; its load has not been measured yet.": ring(func(*v1alpha1.HashRingStatus) {}),
	} {
		live := checkout(t, edgePolicy())
		if r != nil {
			live = checkout(t, edgePolicy(), r)
		}
		live.namespace, live.name = "cdn", "edge"
		wantContains(t, explainWeights(t, live, "", formatTable), want)
	}
}
