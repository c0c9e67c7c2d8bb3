// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func edgePolicy() *v1alpha1.WeightPolicy {
	return &v1alpha1.WeightPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "edge", Generation: 1},
		Spec:       v1alpha1.WeightPolicySpec{TargetRef: v1alpha1.WeightTarget{Kind: v1alpha1.TargetHashRing, Name: "edge-cache"}},
	}
}

func TestWeightsList(t *testing.T) {
	live := checkout(t, checkoutPolicy(), edgePolicy())
	for name, tc := range map[string]struct {
		format format
		all    bool
	}{
		"list": {formatTable, false}, "list-all": {formatTable, true}, "list-wide": {formatWide, true}, "list-yaml": {formatYAML, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := &weightsStatusOptions{streams: genericiooptions.IOStreams{Out: &out}, output: &formatFlag{value: tc.format}, all: tc.all}
			if err := o.list(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			assertGolden(t, "weights-"+name, out.String())
		})
	}
	var out bytes.Buffer
	live.namespace = "empty"
	o := &weightsStatusOptions{streams: genericiooptions.IOStreams{Out: &out}, output: &formatFlag{value: formatTable}}
	if err := o.list(t.Context(), live); err != nil || out.String() != "There is no WeightPolicy in namespace empty.\n" {
		t.Errorf("%v: %s", err, &out)
	}
}

func TestWeightsStatus(t *testing.T) {
	pinned := checkoutPolicy()
	pinned.Annotations, pinned.Generation = map[string]string{v1alpha1.AnnotationPinnedWeights: "7"}, 4
	pinned.Status.Weights.Pinned = 7
	for name, tc := range map[string]struct {
		live   livePolicy
		format format
		most   int
	}{
		"status":         {checkout(t, withSets(checkoutPolicy())...), formatTable, 0},
		"status-wide":    {checkout(t, withSets(checkoutPolicy())...), formatWide, 3},
		"status-json":    {checkout(t, withSets(checkoutPolicy())...), formatJSON, 1},
		"status-pinned":  {checkout(t, withSets(pinned)...), formatTable, 2},
		"status-partial": {checkout(t, checkoutPolicy(), checkoutSets()[1]), formatTable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := &weightsStatusOptions{streams: genericiooptions.IOStreams{Out: &out}, output: &formatFlag{value: tc.format}, endpoints: tc.most}
			if err := o.show(t.Context(), tc.live); err != nil {
				t.Fatal(err)
			}
			assertGolden(t, "weights-"+name, out.String())
		})
	}
}

// TestWeightsOfNewPolicy: nothing is known yet.
func TestWeightsOfNewPolicy(t *testing.T) {
	live := checkout(t, edgePolicy())
	live.namespace, live.name = "cdn", "edge"
	var out bytes.Buffer
	o := &weightsStatusOptions{streams: genericiooptions.IOStreams{Out: &out}, output: &formatFlag{value: formatTable}}
	if err := o.show(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	assertGolden(t, "weights-status-new", out.String())
}

func TestWeightsNotFound(t *testing.T) {
	live := checkout(t, checkoutPolicy(), edgePolicy())
	for name, want := range map[string]string{
		"chekout": "WeightPolicy shop/chekout does not exist: did you mean checkout?",
		"other":   "WeightPolicy shop/other does not exist: namespace shop has checkout",
	} {
		live.name = name
		_, err := live.get(t.Context())
		wantError(t, err, want)
	}
	live.namespace, live.name = "cdn", "edge-cache"
	_, err := live.get(t.Context())
	wantError(t, err, "that is the name of a HashRing, which WeightPolicy edge balances: name that")
	live.namespace = "empty"
	_, err = live.get(t.Context())
	wantError(t, err, "there is none in namespace empty")
}

func TestWeightsUsage(t *testing.T) {
	for _, args := range [][]string{
		{"weights", "other"}, {"weights", "status", "a", "b"}, {"weights", "status", "-A", "a"}, {"weights", "status", "-A", "-n", "x"},
		{"weights", "status", "--endpoints", "-1"}, {"weights", "explain"}, {"weights", "explain", "a", "b", "c"}, {"weights", "history"},
		{"weights", "rollback", "a", "--to-revision", "0"}, {"weights", "resume"}, {"weights", "status", "-o", "tsv"},
	} {
		fail(t, ExitUsage, args...)
	}
}

// TestZoneMeans: with rules of locality an endpoint is compared with its zone, and silent ones with those that report.
func TestZoneMeans(t *testing.T) {
	p := checkoutPolicy()
	p.Spec.Locality = []v1alpha1.LocalityRule{{From: "a", To: map[string]v1alpha1.ZoneShare{"a": 1}}}
	report := ptr.To(weightsAgo(time.Second))
	list := describeEndpoints(p, []v1alpha1.WeightedEndpoint{
		{ID: "a1", Zone: "a", Weight: 1, Utilization: 1000, ReportedAt: report}, {ID: "a2", Zone: "a", Weight: 1, Utilization: 3000, ReportedAt: report},
		{ID: "b1", Zone: "b", Weight: 1, Utilization: 8000, ReportedAt: report},
		{ID: "b2", Zone: "b", Weight: 1, Utilization: 4000, ReportedAt: report, State: v1alpha1.EndpointSilent},
	}, weightsNow)
	got := map[string]float64{}
	for _, e := range list {
		got[e.ID] = e.OverAverage
	}
	for id, want := range map[string]float64{"a1": 0.5, "a2": 1.5, "b1": 1, "b2": 0.5} {
		if got[id] != want {
			t.Errorf("%s is %v of the mean, want %v", id, got[id], want)
		}
	}
	if list[0].ID != "a2" {
		t.Errorf("the first is %s", list[0].ID)
	}
}

// TestWeightAdvice: every reason of a condition of a WeightPolicy that wants something done has advice, and a section of the page.
func TestWeightAdvice(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(packageDir, "..", "..", "docs", "weights.md"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(packageDir, "..", "..", "api", "v1alpha1", "weight_conditions.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.FieldsFunc(string(source), func(r rune) bool { return !unicode.IsLetter(r) }) {
		name, isReason := strings.CutPrefix(word, "Reason")
		if !isReason || name == "" || name == "s" {
			continue
		}
		advice, known := weightAdvice[v1alpha1.ConditionReason(name)]
		if !known {
			t.Errorf("there is no advice for reason %s", name)
		}
		_, docs := adviceFor(name)
		if advice != "" && docs != "docs/weights.md#"+strings.ToLower(name) {
			t.Errorf("reason %s is explained in %q", name, docs)
		}
		if advice != "" && !strings.Contains(string(page), "\n#### "+name+"\n") {
			t.Errorf("docs/weights.md has no section %s", name)
		}
	}
}
