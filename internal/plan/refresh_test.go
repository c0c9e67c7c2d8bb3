// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// TestTouchAnnotation: every name of a HashRing makes an annotation of its own that an API server takes.
func TestTouchAnnotation(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"a", "edge.cache", strings.Repeat("x", 53), strings.Repeat("x", 54), strings.Repeat("x", 55), strings.Repeat("x", 63),
		strings.Repeat("x", 44) + ".y" + strings.Repeat("x", 17), strings.Repeat("x", 44) + ".z" + strings.Repeat("x", 17),
	} {
		key := plan.TouchAnnotation(name)
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			t.Errorf("%s: %s is no annotation: %q", name, key, problems)
		}
		if seen[key] != "" {
			t.Errorf("%s and %s have the same annotation", name, seen[key])
		}
		seen[key] = name
	}
	if got := plan.TouchAnnotation(strings.Repeat("x", 54)); got != "ringwright.dev/snapshot-"+strings.Repeat("x", 54) {
		t.Errorf("got %s of a name that fits", got)
	}
}

// touchedStatus is a status of routing generation 41.
func touchedStatus() v1alpha1.HashRingStatus {
	return v1alpha1.HashRingStatus{
		Active:  &v1alpha1.ActiveRing{PublishedAt: metav1.NewMicroTime(time.Unix(1000, 0))},
		Routing: &v1alpha1.Routing{Generation: 41, Digest: "sha256:0123456789abcdef" + strings.Repeat("0", 48)},
	}
}

const touchedMark = "41-0123456789ab"

func TestDue(t *testing.T) {
	status, unpublished := touchedStatus(), v1alpha1.HashRingStatus{}
	if got := plan.TouchMark(status); got != touchedMark {
		t.Errorf("the mark is %s", got)
	}
	for name, row := range map[string]struct {
		pod    plan.Mounting
		status v1alpha1.HashRingStatus
		want   bool
	}{
		"never touched":                      {plan.Mounting{Made: time.Unix(0, 0)}, status, true},
		"touched":                            {plan.Mounting{Made: time.Unix(0, 0), Mark: touchedMark}, status, false},
		"touched for another":                {plan.Mounting{Made: time.Unix(0, 0), Mark: "41-0123456789ac"}, status, true},
		"made at about that time":            {plan.Mounting{Made: time.Unix(1059, 0)}, status, true},
		"made after it":                      {plan.Mounting{Made: time.Unix(1060, 0)}, status, false},
		"made after it, touched for another": {plan.Mounting{Made: time.Unix(1060, 0), Mark: "40-x"}, status, false},
		"nothing is published":               {plan.Mounting{}, unpublished, false},
	} {
		if got := row.pod.Due(row.status); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRefreshed: what condition Refreshed and status.refresh say.
func TestRefreshed(t *testing.T) {
	old, done := time.Unix(0, 0), touchedMark
	refusing := func(name, mark string) plan.Mounting {
		return plan.Mounting{Name: name, Made: old, Refusal: "it is stubborn", RefusedMark: mark}
	}
	type figures struct {
		Total, Touched, Refused int32
	}
	for name, row := range map[string]struct {
		known           *plan.Refresh
		reason, message string
		figures         figures
	}{
		"nobody has looked": {nil, "Unknown PublishFailed", "the cluster could not be read or written yet", figures{}},
		"no selector":       {&plan.Refresh{Invalid: "no"}, "False InvalidSelector", "spec.consumers.selector: no", figures{}},
		"no pod":            {&plan.Refresh{}, "Unknown NoPodsFound", "no running pod that spec.consumers selects mounts a ConfigMap of the ring", figures{}},
		"all":               {&plan.Refresh{Pods: []plan.Mounting{{Made: old, Mark: done}, {Made: time.Unix(2000, 0)}}}, "True AllPodsTouched", "2 of 2 pods that mount the ring were touched for routing generation 41, or started with it", figures{2, 2, 0}},
		"some":              {&plan.Refresh{Pods: []plan.Mounting{{Made: old, Mark: done}, {Made: old}}}, "False TouchingPods", "1 of 2 pods that mount the ring were touched for routing generation 41", figures{2, 1, 0}},
		"refused earlier":   {&plan.Refresh{Pods: []plan.Mounting{refusing("a", "40-x")}}, "False TouchingPods", "0 of 1 pods that mount the ring were touched for routing generation 41", figures{1, 0, 0}},
		"refused": {
			&plan.Refresh{Pods: []plan.Mounting{refusing("a", done), refusing("b", done), {Made: old, Mark: done}, refusing("c", done), refusing("d", done), refusing("e", done)}}, "False PodsRefused",
			"5 of 6 pods that mount the ring could not be touched for routing generation 41, and kubelets bring what is published when they next sync the pods: " +
				"a (it is stubborn), b (it is stubborn), c (it is stubborn) and 2 more", figures{6, 1, 5},
		},
		"forbidden": {
			&plan.Refresh{Forbidden: "no role grants it", Pods: []plan.Mounting{{Made: old}}}, "False TouchForbidden",
			"the operator may not patch pods in namespace cdn (no role grants it): apply config/components/touch-pods, or set spec.consumers.refresh to Kubelet; " +
				"until then kubelets bring what is published when they next sync the pods", figures{1, 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "edge", Generation: 3}, Status: touchedStatus()}
			r.Spec.Consumers = &v1alpha1.Consumers{Refresh: v1alpha1.RefreshTouchPods}
			status := plan.Status(r, plan.Decision{Refresh: row.known}, errUnread, time.Unix(3000, 0))
			condition := meta.FindStatusCondition(status.Conditions, string(v1alpha1.ConditionRefreshed))
			if condition == nil {
				t.Fatal("there is no condition Refreshed")
			}
			if got := string(condition.Status) + " " + condition.Reason; got != row.reason || condition.Message != row.message || condition.ObservedGeneration != 3 {
				t.Errorf("%s of generation %d: %s", got, condition.ObservedGeneration, condition.Message)
			}
			var got figures
			if n := status.Refresh; n != nil {
				got = figures{n.Total, n.Touched, n.Refused}
				if n.Generation != 41 {
					t.Errorf("it is about generation %d", n.Generation)
				}
			}
			if diff := cmp.Diff(row.figures, got); diff != "" {
				t.Errorf("status.refresh (-want +got):\n%s", diff)
			}
			r.Spec.Consumers.Refresh, r.Status = v1alpha1.RefreshKubelet, status
			status = plan.Status(r, plan.Decision{}, errUnread, time.Unix(3000, 0))
			if meta.FindStatusCondition(status.Conditions, string(v1alpha1.ConditionRefreshed)) != nil || status.Refresh != nil {
				t.Error("the condition or the figures stay with refresh Kubelet")
			}
		})
	}
}

// errUnread leaves all but what the test is about as it is.
var errUnread = errors.New("unread")
