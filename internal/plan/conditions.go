// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// conditionOrder is that in which the status lists them.
var conditionOrder = []v1alpha1.ConditionType{
	v1alpha1.ConditionReady, v1alpha1.ConditionBackendsResolved, v1alpha1.ConditionPublished, v1alpha1.ConditionHeld,
	v1alpha1.ConditionMigrationRequired, v1alpha1.ConditionApplied, v1alpha1.ConditionRefreshed,
	v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
}

// conditionSetter sets conditions of one status.
type conditionSetter struct {
	list       *[]metav1.Condition
	generation int64
	now        time.Time
}

func (c conditionSetter) set(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
	meta.SetStatusCondition(c.list, metav1.Condition{
		Type: string(kind), Status: status, Reason: string(reason), Message: truncate(message),
		ObservedGeneration: c.generation, LastTransitionTime: metav1.NewTime(c.now),
	})
}

func setConditions(s *v1alpha1.HashRingStatus, r *v1alpha1.HashRing, d Decision, failure error, now time.Time) {
	c := conditionSetter{&s.Conditions, r.Generation, now}
	v := verdict(r.Status, d, failure)
	c.set(v1alpha1.ConditionReady, v.ready, v.reason, v.message)
	switch {
	case v.published == metav1.ConditionTrue:
		c.set(v1alpha1.ConditionPublished, v.published, v1alpha1.ReasonRingPublished, publishedAs(d))
	case d.Refusal == nil && failure == nil:
		c.set(v1alpha1.ConditionPublished, v.published, v1alpha1.ReasonCoalescing, coalescing(r.Status, d))
	default:
		c.set(v1alpha1.ConditionPublished, v.published, v.reason, v.message)
	}
	c.setCauses(d, d.decided(failure))
	c.setApplied(s, r, d, failure)
	c.setRefreshed(s, r, d)
	// kstatus wants these two only while they hold.
	for kind, holds := range map[v1alpha1.ConditionType]bool{v1alpha1.ConditionReconciling: v.reconciling, v1alpha1.ConditionStalled: v.stalled} {
		if holds {
			c.set(kind, metav1.ConditionTrue, v.reason, v.message)
		} else {
			meta.RemoveStatusCondition(c.list, string(kind))
		}
	}
	slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int {
		return slices.Index(conditionOrder, v1alpha1.ConditionType(a.Type)) - slices.Index(conditionOrder, v1alpha1.ConditionType(b.Type))
	})
}

// setCauses sets the conditions that say what the ring follows. What was not decided stays as it is.
func (c conditionSetter) setCauses(d Decision, decided bool) {
	if !decided {
		c.keep(v1alpha1.ConditionBackendsResolved, metav1.ConditionUnknown, v1alpha1.ReasonPublishFailed, unread)
		c.keep(v1alpha1.ConditionHeld, metav1.ConditionUnknown, v1alpha1.ReasonPublishFailed, unread)
		c.keep(v1alpha1.ConditionMigrationRequired, metav1.ConditionUnknown, v1alpha1.ReasonPublishFailed, unread)
		return
	}
	if len(d.Problems) > 0 {
		c.set(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, d.Problems[0].Reason, problemsOf(d.Problems))
	} else {
		c.set(v1alpha1.ConditionBackendsResolved, metav1.ConditionTrue, v1alpha1.ReasonResolved, "every source of backends was read")
	}
	switch {
	case d.Hold != nil:
		c.set(v1alpha1.ConditionHeld, metav1.ConditionTrue, d.Hold.Reason, d.Hold.Message)
	case d.holdUnknown():
		c.keep(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonNotHeld, free)
	default:
		c.set(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonNotHeld, free)
	}
	c.setMigrationRequired(d)
}

func (c conditionSetter) setMigrationRequired(d Decision) {
	switch f := d.Frozen; {
	case f != nil && len(f.Waits) > 0:
		c.set(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonMigrationInProgress,
			holderOf(f)+"; until that is over, this waits: "+strings.Join(f.Waits, ", "))
	case d.Candidate != nil:
		c.set(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, d.Candidate.Reason, candidateOf(d))
	case f != nil && f.Paired && d.Refusal == nil:
		c.set(v1alpha1.ConditionMigrationRequired, metav1.ConditionFalse, v1alpha1.ReasonNoCandidate,
			holderOf(f)+"; spec asks for the published ring again, and its candidate is to be taken back")
	default:
		c.set(v1alpha1.ConditionMigrationRequired, metav1.ConditionFalse, v1alpha1.ReasonNoCandidate, "nothing waits")
	}
}

// holderOf says who has frozen the ring.
func holderOf(f *Frozen) string {
	if f.Holder == "" {
		return "a candidate is published, and no RingMigration has the ring"
	}
	return "RingMigration " + f.Holder + " has the ring"
}

// The messages of conditions that say that nothing is known, or nothing the matter.
const (
	unread = "the cluster could not be read or written yet"
	free   = "nothing keeps the ring from following spec and its sources"
)

// keep leaves a condition as it is, but for its generation. One that is not there yet is set.
func (c conditionSetter) keep(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
	if known := meta.FindStatusCondition(*c.list, string(kind)); known != nil {
		status, reason, message = known.Status, v1alpha1.ConditionReason(known.Reason), known.Message
	}
	c.set(kind, status, reason, message)
}

// problemsOf names the first problems.
func problemsOf(problems []Problem) string {
	const shown = 3
	text := ""
	for i, p := range problems[:min(len(problems), shown)] {
		if i > 0 {
			text += "; "
		}
		text += p.Message
	}
	if len(problems) > shown {
		text += fmt.Sprintf(" (and %d more)", len(problems)-shown)
	}
	return text
}

func candidateOf(d Decision) string {
	c := d.Candidate
	if c.Slot != "" && d.Frozen != nil {
		return fmt.Sprintf("%s: revision %d (%s, %d points) is its candidate in slot %s, and gives %s of the key space another owner",
			holderOf(d.Frozen), c.Revision, c.Ring.Algorithm().Version, c.Ring.PointCount(), c.Slot, percentOf(c.Moved))
	}
	return fmt.Sprintf("the ring that spec asks for (%s, %d points) would give %s of the key space another owner than the published one: it is status.candidate, and changePolicy Immediate would publish it",
		c.Ring.Algorithm().Version, c.Ring.PointCount(), percentOf(c.Moved))
}

// publishedAs says what is published.
func publishedAs(d Decision) string {
	return fmt.Sprintf("revision %d is published in slot %s", d.Publication.Revision, d.Publication.File.Stable.Slot)
}

// conditions is what the conditions say together.
type conditions struct {
	ready, published     metav1.ConditionStatus
	reconciling, stalled bool
	reason               v1alpha1.ConditionReason
	message              string
}

func verdict(last v1alpha1.HashRingStatus, d Decision, failure error) conditions {
	switch {
	case failure != nil:
		return conditions{
			ready: metav1.ConditionFalse, published: metav1.ConditionFalse, reconciling: true, reason: v1alpha1.ReasonPublishFailed,
			message: fmt.Sprintf("%v; it is tried again", failure),
		}
	case d.Refusal != nil:
		return conditions{
			ready: metav1.ConditionFalse, published: metav1.ConditionFalse, stalled: !d.Refusal.Waits, reconciling: d.Refusal.Waits, reason: d.Refusal.Reason,
			message: d.Refusal.Message + "; " + lastGood(last, d),
		}
	}
	v := conditions{
		ready: metav1.ConditionTrue, published: metav1.ConditionTrue, reason: v1alpha1.ReasonRingPublished, message: publishedAs(d),
	}
	if d.Wait > 0 {
		v = conditions{
			ready: metav1.ConditionTrue, published: metav1.ConditionFalse, reconciling: true, reason: v1alpha1.ReasonCoalescing,
			message: coalescing(last, d),
		}
	}
	switch {
	case d.Hold != nil && d.Hold.Blocks && (d.Hold.Reason == v1alpha1.ReasonSuddenLoss || d.Hold.Reason == v1alpha1.ReasonBelowMinimum):
		v.ready, v.reconciling, v.stalled, v.reason, v.message = metav1.ConditionFalse, false, true, d.Hold.Reason, d.Hold.Message+"; "+v.message
	case d.Wait > 0:
	case d.Hold != nil && d.Hold.Reason == v1alpha1.ReasonPinned:
		v.reason, v.message = v1alpha1.ReasonPinned, d.Hold.Message+fmt.Sprintf("; it is revision %d now", d.Publication.Revision)
	case d.Candidate != nil:
		v.reason, v.message = v1alpha1.ReasonCandidateWaiting, candidateOf(d)
	}
	return v
}

// coalescing says what waits for minInterval.
func coalescing(last v1alpha1.HashRingStatus, d Decision) string {
	return "a newer ring waits for spec.publication.minInterval; " + lastGood(last, d)
}

// lastGood says what readers have in the meantime.
func lastGood(s v1alpha1.HashRingStatus, d Decision) string {
	switch {
	case s.Active == nil:
		return "no ring has been published yet"
	case d.LastGoodIntact:
		return fmt.Sprintf("revision %d stays published", s.Active.Revision)
	case d.Wait > 0:
		return fmt.Sprintf("a newer one than revision %d is published, and the status follows", s.Active.Revision)
	case d.Desired != nil:
		return fmt.Sprintf("revision %d had been edited or deleted and was restored", s.Active.Revision)
	default:
		return fmt.Sprintf("revision %d was published, and has been edited or deleted since: it is restored when this is mended", s.Active.Revision)
	}
}
