// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func bySteps(p *v1alpha1.WeightPolicy) {
	p.Spec.Rollout.Steps = []v1alpha1.RolloutStep{{Percent: 0, Duration: *seconds(60)}, {Percent: 25, Duration: *seconds(120)}}
	p.Spec.Rollout.Abort = &v1alpha1.RolloutAbort{MaxOverAverage: "1.5", ErrorRatio: "2%", For: seconds(30)}
}

// moment is one look: how many seconds after the beginning, what was measured, and what is to come of it.
type moment struct {
	at      int
	m       measured
	want    string
	aborted string
}

func well() measured  { return measured{maxOverAverage: 1.2, requests: 1000, errors: 1, updated: true} }
func badly() measured { return measured{maxOverAverage: 1.6, requests: 1000, errors: 1, updated: true} }
func failing() measured {
	return measured{maxOverAverage: math.NaN(), requests: 1000, errors: 20, updated: true}
}
func unknown(m measured) measured { m.updated = false; return m }

func TestRollout(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1alpha1.WeightPolicy)
		moments []moment
	}{
		"steps": {bySteps, []moment{
			{0, well(), "0%", ""}, {59, well(), "0%", ""}, {60, well(), "25%", ""}, {179, well(), "25%", ""}, {180, well(), "100%", ""}, {1000, well(), "100%", ""},
		}},
		"no steps":           {func(*v1alpha1.WeightPolicy) {}, []moment{{0, well(), "100%", ""}}},
		"shadow":             {func(p *v1alpha1.WeightPolicy) { p.Spec.Rollout.Percent = ptr.To[int32](0) }, []moment{{0, well(), "0%", ""}, {9999, well(), "0%", ""}}},
		"percent is not set": {func(p *v1alpha1.WeightPolicy) { p.Spec.Rollout.Percent = nil }, []moment{{0, well(), "100%", ""}}},
		"a step waits for a measurement": {bySteps, []moment{
			{0, well(), "0%", ""}, {60, unknown(well()), "0%", ""}, {600, unknown(well()), "0%", ""}, {610, well(), "25%", ""},
		}},
		"abort by maxOverAverage": {bySteps, []moment{
			{0, well(), "0%", ""}, {60, well(), "25%", ""}, {70, badly(), "25%", ""}, {99, badly(), "25%", ""},
			{100, badly(), "0%", "maxOverAverage is 1.600, abort is at 1.5 for 30s, at 25%"},
			{500, well(), "0%", "maxOverAverage is 1.600, abort is at 1.5 for 30s, at 25%"},
		}},
		"abort by errors": {bySteps, []moment{
			{0, well(), "0%", ""}, {10, failing(), "0%", ""}, {40, failing(), "0%", "2.00% of the requests fail, abort is at 2% for 30s, at 0%"},
		}},
		"abort is met with a break": {bySteps, []moment{
			{0, well(), "0%", ""}, {10, badly(), "0%", ""}, {30, well(), "0%", ""}, {35, badly(), "0%", ""}, {55, badly(), "0%", ""}, {65, badly(), "0%", "maxOverAverage is 1.600, abort is at 1.5 for 30s, at 0%"},
		}},
		"abort is not judged without a measurement": {bySteps, []moment{
			{0, well(), "0%", ""}, {10, badly(), "0%", ""}, {50, unknown(badly()), "0%", ""}, {55, well(), "0%", ""}, {60, well(), "25%", ""},
		}},
		"abort just not met": {bySteps, []moment{
			{0, well(), "0%", ""}, {10, measured{maxOverAverage: 1.499, requests: 1000, errors: 19.9, updated: true}, "0%", ""},
			{50, measured{maxOverAverage: 1.499, requests: 1000, errors: 19.9, updated: true}, "0%", ""},
		}},
		"errors without requests": {bySteps, []moment{
			{0, well(), "0%", ""}, {10, measured{maxOverAverage: 1, errors: 5, updated: true}, "0%", ""}, {59, measured{maxOverAverage: 1, errors: 5, updated: true}, "0%", ""},
		}},
		"abort at once": {func(p *v1alpha1.WeightPolicy) { bySteps(p); p.Spec.Rollout.Abort.For = seconds(0) }, []moment{
			{0, well(), "0%", ""}, {10, badly(), "0%", "maxOverAverage is 1.600, abort is at 1.5 for 0s, at 0%"},
		}},
		"abort after a minute where it does not say": {func(p *v1alpha1.WeightPolicy) { bySteps(p); p.Spec.Rollout.Abort.For = nil }, []moment{
			{0, well(), "0%", ""}, {10, badly(), "0%", ""}, {69, badly(), "0%", ""}, {70, badly(), "0%", "maxOverAverage is 1.600, abort is at 1.5 for 1m0s, at 0%"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := newPolicy(test.change)
			var at *v1alpha1.RolloutStatus
			for _, m := range test.moments {
				now := advanceRollout(policy, at, m.m, epochStart.Add(time.Duration(m.at)*time.Second))
				if now.Percent != m.want || now.Aborted != m.aborted {
					t.Fatalf("after %d s it is at %s, aborted %q; want %s, %q", m.at, now.Percent, now.Aborted, m.want, m.aborted)
				}
				at = rolloutStatus(&now) // As the next owner finds it.
			}
		})
	}
}

func TestARolloutBeginsAnewWithItsSpecOnly(t *testing.T) {
	policy := newPolicy(bySteps)
	begun := advanceRollout(policy, nil, well(), epochStart)
	at := advanceRollout(policy, &begun, well(), epochStart.Add(time.Minute))
	for name, test := range map[string]struct {
		change func(*v1alpha1.WeightPolicySpec)
		want   string
	}{
		"limits":   {func(s *v1alpha1.WeightPolicySpec) { s.Limits.MaxWeight = "4" }, "25%"},
		"suspend":  {func(s *v1alpha1.WeightPolicySpec) { s.Suspend = true }, "25%"},
		"locality": {func(s *v1alpha1.WeightPolicySpec) { s.Locality = []v1alpha1.LocalityRule{{From: "a"}} }, "25%"},
		"strategy": {func(s *v1alpha1.WeightPolicySpec) { s.Strategy.Profile = v1alpha1.ProfileFast }, "0%"},
		"abort":    {func(s *v1alpha1.WeightPolicySpec) { s.Rollout.Abort = nil }, "0%"},
		"percent":  {func(s *v1alpha1.WeightPolicySpec) { s.Rollout.Percent = ptr.To[int32](50) }, "0%"},
	} {
		changed := newPolicy(bySteps)
		test.change(&changed.Spec)
		changed.Generation = 4
		got := advanceRollout(changed, &at, well(), epochStart.Add(61*time.Second))
		if got.Percent != test.want {
			t.Errorf("%s: at %s, want %s", name, got.Percent, test.want)
		}
		if again := test.want == "0%"; again != (got.Generation == 4) || again != got.Since.Time.Equal(epochStart.Add(61*time.Second)) {
			t.Errorf("%s: of generation %d, since %v", name, got.Generation, got.Since)
		}
	}
}

// TestARolloutOfAnEditedStatus: status is written by whoever may, and a step that there is not must not end the process.
func TestARolloutOfAnEditedStatus(t *testing.T) {
	policy := newPolicy(bySteps)
	for _, test := range []struct {
		step int32
		want string
	}{{-7, "0%"}, {99, "100%"}} {
		before := v1alpha1.RolloutStatus{Digest: rolloutDigest(&policy.Spec), Step: test.step, Since: metav1.NewTime(epochStart)}
		if got := advanceRollout(policy, &before, measured{}, epochStart); got.Percent != test.want {
			t.Errorf("step %d: at %s, want %s", test.step, got.Percent, test.want)
		}
	}
	if got := percentOf(policy.Spec.Rollout, v1alpha1.RolloutStatus{Step: -1}); got != 100 {
		t.Errorf("percent of step -1 is %d", got)
	}
}

// TestTheStatusOfARolloutComparesWithWhatIsRead: with a fraction of a second each look would write the status.
func TestTheStatusOfARolloutComparesWithWhatIsRead(t *testing.T) {
	policy := newPolicy(bySteps)
	begun := advanceRollout(policy, nil, well(), epochStart.Add(123456789))
	bad := advanceRollout(policy, &begun, badly(), epochStart.Add(10*time.Second+987654321))
	got := rolloutStatus(&bad)
	if diff := cmp.Diff([]time.Time{epochStart, epochStart.Add(10 * time.Second)}, []time.Time{got.Since.Time, got.BadSince.Time}); diff != "" {
		t.Error(diff)
	}
	if bad.Since.Time.Equal(got.Since.Time) {
		t.Error("the owner's own time has changed")
	}
}
