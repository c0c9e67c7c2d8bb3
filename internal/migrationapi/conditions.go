// SPDX-License-Identifier: Apache-2.0

package migrationapi

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// maxConditionMessage is the bound of a condition's message, in bytes.
const maxConditionMessage = 1024

// conditionOrder is that in which the status lists them.
var conditionOrder = []v1alpha1.ConditionType{
	v1alpha1.ConditionAccepted, v1alpha1.ConditionPrepared, v1alpha1.ConditionProgressing, v1alpha1.ConditionConverged,
	v1alpha1.ConditionGatesPassing, v1alpha1.ConditionHeld, v1alpha1.ConditionRollbackAvailable, v1alpha1.ConditionSucceeded,
	v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
}

// verdict is what a condition says.
type verdict struct {
	status  metav1.ConditionStatus
	reason  v1alpha1.ConditionReason
	message string
}

func is(fact bool, reason v1alpha1.ConditionReason, format string, args ...any) verdict {
	v := verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	if fact {
		v.status = metav1.ConditionTrue
	}
	return v
}

func setConditions(status *v1alpha1.RingMigrationStatus, generation int64, s migration.State, o migration.Observation, now metav1.Time) {
	verdicts := map[v1alpha1.ConditionType]verdict{
		v1alpha1.ConditionAccepted:          accepted(o),
		v1alpha1.ConditionPrepared:          prepared(s),
		v1alpha1.ConditionProgressing:       progressing(s),
		v1alpha1.ConditionConverged:         converged(s),
		v1alpha1.ConditionGatesPassing:      gatesPassing(s, o, now),
		v1alpha1.ConditionHeld:              held(s),
		v1alpha1.ConditionRollbackAvailable: is(s.RollbackAvailable(), v1alpha1.ConditionReason(s.At), "%s", wayBack(s)),
		v1alpha1.ConditionSucceeded:         succeeded(s),
	}
	// kstatus wants these two only while they hold.
	for kind, v := range map[v1alpha1.ConditionType]verdict{v1alpha1.ConditionReconciling: reconciling(s), v1alpha1.ConditionStalled: stalled(s)} {
		if v.status == metav1.ConditionTrue {
			verdicts[kind] = v
		} else {
			meta.RemoveStatusCondition(&status.Conditions, string(kind))
		}
	}
	for kind, v := range verdicts {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: string(kind), Status: v.status, Reason: string(v.reason), Message: cut(v.message, maxConditionMessage),
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int {
		return slices.Index(conditionOrder, v1alpha1.ConditionType(a.Type)) - slices.Index(conditionOrder, v1alpha1.ConditionType(b.Type))
	})
}

func accepted(o migration.Observation) verdict {
	if err := o.Spec.Validate(); err != nil {
		return is(false, v1alpha1.ReasonInvalidPlan, "%v", err)
	}
	return is(true, v1alpha1.ReasonValid, "the plan can be followed")
}

func prepared(s migration.State) verdict {
	switch {
	case s.InStep(), s.At == migration.Retiring, s.At == migration.Succeeded:
		return is(true, v1alpha1.ReasonPrepared, "both rings are with all consumers, and every enforced gate has returned data")
	case s.At == migration.Preparing:
		return is(false, v1alpha1.ReasonPreparing, "both rings are on their way to the consumers, no key on the candidate; gates are tried")
	}
	return is(false, v1alpha1.ReasonNotPrepared, "it is %s", s.At)
}

func progressing(s migration.State) verdict {
	switch {
	case s.At == migration.Succeeded || s.At == migration.RolledBack:
		return is(false, v1alpha1.ConditionReason(s.At), "there is nothing more to do")
	case s.At == migration.RollingBack:
		return is(true, v1alpha1.ConditionReason(s.At), "it goes back: %s", causeOf(s))
	case len(s.Holds) > 0:
		return is(false, v1alpha1.ReasonHeld, "%s", holdsOf(s))
	case s.InStep():
		return is(true, v1alpha1.ConditionReason(s.At), "%s", doing(s))
	}
	return is(true, v1alpha1.ConditionReason(s.At), "it is %s", s.At)
}

// doing says what a step waits for.
func doing(s migration.State) string {
	where := "before the old ring is retired"
	if !s.Retirement() {
		stage := s.Plan[s.Stage]
		where = fmt.Sprintf("stage %s, step %d of %d (%s)", stage.Name, s.Step+1, len(stage.Steps), Percent(stage.Steps[s.Step].Traffic))
	}
	return fmt.Sprintf("%s: %s", where, s.At)
}

func converged(s migration.State) verdict {
	switch {
	case s.Dispatches == 0 || s.Dispatched.IsZero():
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonNotPrepared, "nothing is published for it"}
	case s.Unconverged.IsZero():
		return is(true, v1alpha1.ReasonConverged, "the consumers that have to have split %d have it", s.Dispatches)
	}
	for _, h := range s.Holds {
		if h.Type == migration.HoldNotConverged {
			return is(false, v1alpha1.ConditionReason(h.Type), "%s", h.Detail)
		}
	}
	return is(false, v1alpha1.ReasonConverging, "split %d is on its way to the consumers", s.Dispatches)
}

func gatesPassing(s migration.State, o migration.Observation, now metav1.Time) verdict {
	for _, h := range s.Holds {
		switch h.Type {
		case migration.HoldGateFailed:
			return is(false, v1alpha1.ConditionReason(h.Type), "%s", h.Detail)
		case migration.HoldGateUnknown:
			return verdict{metav1.ConditionUnknown, v1alpha1.ConditionReason(h.Type), h.Detail}
		}
	}
	switch passing, judging := s.Passing(o.Spec, now.Time); {
	case judging == 0:
		return is(true, v1alpha1.ReasonNoGates, "no gate is enforced here")
	case passing < judging:
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonGatesNotJudging, fmt.Sprintf("%d of %d gates pass; the others have not judged this step yet", passing, judging)}
	default:
		return is(true, v1alpha1.ReasonGatesPassed, "all %d gates pass", judging)
	}
}

func held(s migration.State) verdict {
	if len(s.Holds) == 0 {
		return is(false, v1alpha1.ReasonNotHeld, "nothing keeps it from going forward")
	}
	return is(true, v1alpha1.ConditionReason(s.Holds[0].Type), "%s", holdsOf(s))
}

// holdsOf lists the holds with what they say.
func holdsOf(s migration.State) string {
	var list []string
	for _, h := range s.Holds {
		list = append(list, fmt.Sprintf("%s: %s", h.Type, h.Detail))
	}
	return strings.Join(list, "; ")
}

func wayBack(s migration.State) string {
	switch {
	case s.RollbackAvailable():
		return "action Rollback or spec.direction Backward takes all keys back to the stable ring"
	case s.At == migration.RollingBack, s.At == migration.RolledBack:
		return "it goes, or has gone, back already"
	}
	return "the old ring is being retired, or is gone: a new RingMigration goes the other way"
}

func succeeded(s migration.State) verdict {
	switch s.At {
	case migration.Succeeded:
		return is(true, v1alpha1.ConditionReason(s.At), "the candidate is the stable ring and the old one is gone")
	case migration.RolledBack:
		text := "it went back: " + causeOf(s)
		if len(s.Unreached) > 0 {
			text += "; not known to have arrived in " + strings.Join(s.Unreached, ", ")
		}
		return is(false, v1alpha1.ConditionReason(s.At), "%s", text)
	}
	return is(false, v1alpha1.ReasonInProgress, "it is %s", s.At)
}

func causeOf(s migration.State) string {
	if s.Back == nil {
		return "unknown"
	}
	return strings.TrimSpace(string(s.Back.Cause) + " " + s.Back.Detail)
}

// reconciling says that there is more to come. One that is held is not done either. But where there is nothing to go to, because
// everything was built anew from the manifests that it was made with, there is nothing to wait for.
func reconciling(s migration.State) verdict {
	idle := s.At == migration.Pending && len(s.Holds) == 1 && s.Holds[0].Type == migration.HoldNoCandidate
	if s.At == migration.Succeeded || idle || stalled(s).status == metav1.ConditionTrue {
		return verdict{status: metav1.ConditionFalse}
	}
	v := progressing(s)
	return verdict{metav1.ConditionTrue, v.reason, v.message}
}

// stalled says that somebody has to change something before it goes on.
func stalled(s migration.State) verdict {
	switch s.At {
	case migration.RolledBack:
		v := succeeded(s)
		return verdict{metav1.ConditionTrue, v.reason, v.message}
	case migration.RollingBack, migration.Succeeded: // They need no plan any more.
		return verdict{status: metav1.ConditionFalse}
	}
	for _, h := range s.Holds {
		if h.Type == migration.HoldInvalidPlan {
			return verdict{metav1.ConditionTrue, v1alpha1.ReasonInvalidPlan, h.Detail}
		}
	}
	return verdict{status: metav1.ConditionFalse}
}
