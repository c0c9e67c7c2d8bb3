// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// heldRing returns the ring of the tests, held for a reason.
func heldRing(t *testing.T, hold *v1alpha1.Hold) *v1alpha1.HashRing {
	t.Helper()
	ring := hashRingOf(t, edgeManifest)
	if hold != nil {
		hold.Since = metav1.NewTime(time.Date(2026, 12, 1, 9, 0, 0, 0, time.FixedZone("", 3600)))
	}
	ring.Status.Hold = hold
	return ring
}

// releaseOf runs "release" and returns what it printed.
func releaseOf(t *testing.T, ring *v1alpha1.HashRing, dryRun bool) (string, liveRing, error) {
	t.Helper()
	live := liveOf(t, ring)
	var out bytes.Buffer
	o := &releaseOptions{streams: genericiooptions.IOStreams{Out: &out}, dryRun: dryRun}
	err := o.run(t.Context(), live)
	return out.String(), live, err
}

// annotated returns the annotation of a release.
func annotated(t *testing.T, live liveRing) string {
	t.Helper()
	ring, err := live.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ring.Annotations[v1alpha1.AnnotationRelease]
}

func suddenLoss() *v1alpha1.Hold {
	return &v1alpha1.Hold{Reason: v1alpha1.ReasonSuddenLoss, Token: "b1946ac9", Backends: []string{"10.0.0.1:8080", "10.0.0.2:8080"}, Count: 3}
}

func TestRelease(t *testing.T) {
	ring := heldRing(t, suddenLoss())
	ring.Status.Pending = &v1alpha1.PendingChange{Movement: "61.20%"}
	out, live, err := releaseOf(t, ring.DeepCopy(), false)
	if err != nil {
		t.Fatal(err)
	}
	assertGolden(t, "release", out)
	if got := annotated(t, live); got != "b1946ac9" {
		t.Errorf("annotation is %q", got)
	}

	out, live, err = releaseOf(t, ring.DeepCopy(), true)
	if err != nil {
		t.Fatal(err)
	}
	wantContains(t, out, "HashRing cdn/edge would be released: nothing was changed.\n")
	if got := annotated(t, live); got != "" {
		t.Errorf("a dry run annotated it with %q", got)
	}

	ring.Annotations = map[string]string{v1alpha1.AnnotationRelease: "b1946ac9"}
	if out, _, err = releaseOf(t, ring, false); err != nil {
		t.Fatal(err)
	}
	wantContains(t, out, "HashRing cdn/edge has been released already: the operator is about to see it.\n")
}

func TestReleaseSaysWhatElseEndsAHold(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.HashRing)
		hold   *v1alpha1.Hold
		want   string
	}{
		"none": {want: "HashRing cdn/edge is not held: there is nothing to release"},
		"pinned": {
			hold:   &v1alpha1.Hold{Reason: v1alpha1.ReasonPinned},
			change: func(r *v1alpha1.HashRing) { r.Spec.PinnedRevision = ptr.To[int64](3) },
			want:   `spec.pinnedRevision holds it at revision 3; "kubectl hashring rollback edge -n cdn --unpin" takes that away`,
		},
		"movement": {
			hold: &v1alpha1.Hold{Reason: v1alpha1.ReasonMovementBudget},
			change: func(r *v1alpha1.HashRing) {
				r.Spec.Membership.MaxMovement = "5%"
				r.Status.Candidate = &v1alpha1.CandidateRing{Movement: "7.31%"}
			},
			want: "spec.membership.maxMovement is 5%: a larger one, or spec.changePolicy Immediate, lets the change through. The change moves 7.31%.",
		},
		"too few": {
			hold:   &v1alpha1.Hold{Reason: v1alpha1.ReasonBelowMinimum, Count: 2},
			change: func(r *v1alpha1.HashRing) { r.Spec.Membership.MinBackends = 3 },
			want:   "spec.membership.minBackends is 3: more backends, a weight above 0 for those that are drained, or a smaller minBackends, end it",
		},
		"what this program does not know": {hold: &v1alpha1.Hold{Reason: "Tuesday"}, want: "reason Tuesday ends with its cause"},
	} {
		t.Run(name, func(t *testing.T) {
			ring := heldRing(t, test.hold)
			if test.change != nil {
				test.change(ring)
			}
			_, live, err := releaseOf(t, ring, false)
			wantError(t, err, test.want)
			if got := annotated(t, live); got != "" {
				t.Errorf("it was annotated with %q", got)
			}
		})
	}
}
