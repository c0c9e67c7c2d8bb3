// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// servedRecord has the weights that checkoutSets has.
func servedRecord() map[string]int32 {
	weights := map[string]int32{}
	for _, s := range checkoutSets() {
		for _, e := range s.Endpoints {
			weights[e.ID] = e.Weight
		}
	}
	return weights
}

func recorded(t *testing.T, p *v1alpha1.WeightPolicy) livePolicy {
	broken := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout-weights-4", Labels: map[string]string{v1alpha1.LabelWeightPolicy: "checkout"}},
		Revision:   4, Data: runtime.RawExtension{Raw: []byte(`{"version":1}`)},
	}
	old := servedRecord()
	old["uid-0"], old["uid-1"] = 9000, 16000
	delete(old, "uid-4")
	return checkout(t, withSets(p, broken, weightRecord(t, 5, 41, "Converged", servedRecord()), weightRecord(t, 2, 30, "Rollout", map[string]int32{"uid-0": 10000}),
		weightRecord(t, 3, 35, "Converged", old))...)
}

func TestWeightsHistory(t *testing.T) {
	pinned := checkoutPolicy()
	pinned.Annotations = map[string]string{v1alpha1.AnnotationPinnedWeights: "3"}
	lost := checkoutPolicy()
	lost.Annotations = map[string]string{v1alpha1.AnnotationPinnedWeights: "9"}
	odd := checkoutPolicy()
	odd.Annotations = map[string]string{v1alpha1.AnnotationPinnedWeights: "latest"}
	for name, tc := range map[string]struct {
		live   livePolicy
		format format
	}{
		"history": {recorded(t, checkoutPolicy()), formatTable}, "history-json": {recorded(t, pinned), formatJSON}, "history-pinned": {recorded(t, pinned), formatTable},
		"history-lost": {recorded(t, lost), formatTable}, "history-odd": {recorded(t, odd), formatTable}, "history-none": {checkout(t, checkoutPolicy()), formatTable},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := &weightsHistoryOptions{streams: genericiooptions.IOStreams{Out: &out}, output: &formatFlag{value: tc.format}}
			if err := o.run(t.Context(), tc.live); err != nil {
				t.Fatal(err)
			}
			assertGolden(t, "weights-"+name, out.String())
		})
	}
}

// pinOf returns the annotation in the cluster.
func pinOf(t *testing.T, live livePolicy) string {
	t.Helper()
	p := &v1alpha1.WeightPolicy{}
	if err := live.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "checkout"}, p); err != nil {
		t.Fatal(err)
	}
	return p.Annotations[v1alpha1.AnnotationPinnedWeights]
}

func TestWeightsRollback(t *testing.T) {
	pin := func(text string) *v1alpha1.WeightPolicy {
		p := checkoutPolicy()
		p.Annotations = map[string]string{v1alpha1.AnnotationPinnedWeights: text, "other": "stays"}
		return p
	}
	for name, tc := range map[string]struct {
		policy           *v1alpha1.WeightPolicy
		o                weightsRollbackOptions
		in               string
		out, failed, pin string
	}{
		"the newest that differs": {
			checkoutPolicy(), weightsRollbackOptions{yes: true}, "",
			"Revision 3 is of 2026-03-01T05:00:00Z, when max/avg was 1.015.\nOf 8 endpoints 2 would have another weight, at most 2.000 times what it is; 1 are not in it and are served as new ones are.\n" +
				"WeightPolicy shop/checkout is pinned to revision 3. kubectl hashring weights resume checkout -n shop lets its weights follow the load again.\n", "", "3",
		},
		"the one before the pin": {pin("3"), weightsRollbackOptions{yes: true}, "", "is pinned to revision 2.", "", "2"},
		"none before the pin":    {pin("2"), weightsRollbackOptions{yes: true}, "", "", "has nothing to go back to; revisions that are kept: 2, 3, 5", "2"},
		"named":                  {checkoutPolicy(), weightsRollbackOptions{yes: true, toRevision: 5}, "", "Of 8 endpoints 0 would have another weight.\n", "", "5"},
		"pinned already":         {pin("5"), weightsRollbackOptions{toRevision: 5}, "", "is pinned to revision 5 already", "", "5"},
		"not kept":               {checkoutPolicy(), weightsRollbackOptions{toRevision: 9}, "", "", "revision 9 of WeightPolicy shop/checkout is not kept; revisions that are: 2, 3, 5", ""},
		"broken":                 {checkoutPolicy(), weightsRollbackOptions{toRevision: 4}, "", "", "checkout-weights-4: malformed record of weights", ""},
		"dry run":                {checkoutPolicy(), weightsRollbackOptions{dryRun: true}, "", "would be pinned to revision 3: nothing was changed", "", ""},
		"nobody to ask":          {checkoutPolicy(), weightsRollbackOptions{}, "", "", "has to be confirmed: --yes does that", ""},
		"yes":                    {checkoutPolicy(), weightsRollbackOptions{terminal: true}, "y\n", "Go on? [y/N] ", "", "3"},
		"no":                     {checkoutPolicy(), weightsRollbackOptions{terminal: true}, "\n", "Go on? [y/N] ", "not confirmed: nothing was done", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tc.o.streams = genericiooptions.IOStreams{In: strings.NewReader(tc.in), Out: &out}
			live := recorded(t, tc.policy)
			err := tc.o.run(t.Context(), live)
			if tc.failed != "" {
				wantError(t, err, tc.failed)
			} else if err != nil {
				t.Fatal(err)
			}
			wantContains(t, out.String(), tc.out)
			if got := pinOf(t, live); got != tc.pin {
				t.Errorf("pinned to %q, want %q", got, tc.pin)
			}
		})
	}
}

func TestWeightsResume(t *testing.T) {
	p := checkoutPolicy()
	p.Annotations = map[string]string{v1alpha1.AnnotationPinnedWeights: "3", "other": "stays"}
	live := checkout(t, p)
	for _, step := range []struct {
		dryRun    bool
		want, pin string
	}{
		{true, "would no longer be pinned to revision 3: nothing was changed", "3"},
		{false, "is no longer pinned to revision 3: its weights follow the load again", ""},
		{false, "is not pinned", ""},
	} {
		var out bytes.Buffer
		o := weightsRollbackOptions{streams: genericiooptions.IOStreams{Out: &out}, dryRun: step.dryRun}
		if err := o.resume(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		wantContains(t, out.String(), step.want)
		if got := pinOf(t, live); got != step.pin {
			t.Errorf("pinned to %q, want %q", got, step.pin)
		}
	}
}
