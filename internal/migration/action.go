// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"slices"
	"strings"
	"time"
)

// Refusal is why an action does nothing; "" is that of one that was accepted.
type Refusal string

// The refusals.
const (
	// StaleStep means that the action was given for another attempt, step or dispatch.
	StaleStep Refusal = "StaleStep"
	// TooLate means that the old ring is being retired, or that it goes back already.
	TooLate           Refusal = "TooLate"
	NotAwaiting       Refusal = "NotAwaitingApproval"
	NotPaused         Refusal = "NotPaused"
	NotRolledBack     Refusal = "NotRolledBack"
	NothingToSkip     Refusal = "NothingToSkip"
	DirectionBackward Refusal = "DirectionBackward"
	BeingDeleted      Refusal = "BeingDeleted"
	UnknownType       Refusal = "UnknownType"
)

// Answered is an action and what became of it.
type Answered struct {
	Action
	At      time.Time
	Refusal Refusal
}

// asked is what the actions of one call ask for that the state does not keep.
type asked struct {
	back  *Return
	retry bool
}

// answer decides on the actions. One that was answered before keeps its answer, so a crash before it was told changes nothing.
func (m machine) answer(s *State, o Observation, now time.Time) (asked, []Answered) {
	var want asked
	var answers []Answered
	for _, a := range o.Actions[:min(len(o.Actions), maxHistory)] {
		i := slices.IndexFunc(s.History, func(h Answered) bool { return h.ID == a.ID })
		if i >= 0 {
			answers = append(answers, s.History[i])
			continue
		}
		answer := Answered{Action: a, At: now, Refusal: m.refusal(*s, o, a, want)}
		if answer.Refusal == "" {
			s.accept(a, now, &want)
		}
		answers = append(answers, answer)
		s.History = append(s.History, answer)
	}
	s.History = s.History[max(len(s.History)-maxHistory, 0):]
	return want, answers
}

// refusal says why an action is refused. Pause and Rollback are cautious: they need the attempt only, and none where they have
// no token.
func (m machine) refusal(s State, o Observation, a Action, want asked) Refusal {
	switch a.Type {
	case RollbackAction, PauseAction:
		return s.refusalOfCaution(a)
	}
	if !m.fresh(s, a) {
		return StaleStep
	}
	switch a.Type {
	case Approve, Reject:
		return unless(s.At == AwaitingApproval && s.current(o.Spec).Approval && !s.Approved, NotAwaiting)
	case ResumeAction:
		return unless(s.Paused != nil, NotPaused)
	case SkipAction:
		return unless(s.At == Soaking || s.At == AwaitingApproval || s.At == Complete, NothingToSkip)
	case RetryAction:
		return refusalOfRetry(s, o, want)
	}
	return UnknownType
}

func (s State) refusalOfCaution(a Action) Refusal {
	attempt, _, _ := strings.Cut(s.Token(), ".")
	switch theirs, _, _ := strings.Cut(a.Token, "."); {
	case a.Token != "" && theirs != attempt:
		return StaleStep
	case a.Type == RollbackAction && !s.RollbackAvailable(), s.At == Retiring, s.At == Succeeded:
		return TooLate
	}
	return ""
}

func refusalOfRetry(s State, o Observation, want asked) Refusal {
	switch {
	case s.At != RolledBack:
		return NotRolledBack
	case o.Deleted:
		return BeingDeleted
	case o.Spec.Backward:
		return DirectionBackward
	}
	return unless(!want.retry, StaleStep)
}

func unless(fact bool, refusal Refusal) Refusal {
	if fact {
		return ""
	}
	return refusal
}

func fresh(s State, a Action) bool { return a.Token == s.Token() }

// accept does what an action asks for.
func (s *State) accept(a Action, now time.Time, want *asked) {
	switch a.Type {
	case Approve:
		s.Approved = true
	case Reject:
		want.back = &Return{Cause: CauseRejected, Detail: "by " + a.Actor}
	case RollbackAction:
		want.back = &Return{Cause: CauseAction, Detail: "by " + a.Actor}
	case PauseAction:
		if s.Paused == nil {
			s.Paused = &Pause{a.Actor, now}
		}
	case ResumeAction:
		s.Paused = nil
	case SkipAction:
		s.Skipped = true
	case RetryAction:
		want.retry = true
	}
}

// cause returns why to go back; nil where nothing asks for it, or it is too late, or done.
func (s State) cause(o Observation, want asked) *Return {
	if !s.RollbackAvailable() {
		return nil
	}
	gone := slices.ContainsFunc(o.Rings, func(r Ring) bool { return r.Candidate == "" && s.Candidates[r.Name] != "" })
	switch {
	case o.Deleted && o.Spec.OnDelete != DeleteFreezes:
		return &Return{Cause: CauseDeleted}
	case want.back != nil:
		return want.back
	case o.Spec.Backward:
		return &Return{Cause: CauseBackward}
	case gone:
		return &Return{Cause: CauseReverted}
	}
	if gate, detail := s.failed(o.Spec); gate != nil && stepPlace(s.At) && o.Spec.Rollback.Automatic {
		return &Return{Cause: CauseGate, Detail: detail}
	}
	return nil
}

// record takes what was seen into the state: an edit of the plan, measurements, acknowledgements. A Skip takes along those who
// came too late for a stage: they get the whole with a dispatch and a soak of their own.
func (m machine) record(s *State, o Observation, now time.Time) {
	s.adopt(o.Spec)
	s.retake(o, now)
	s.measure(o, now)
	if late := s.latecomers(o); s.Retirement() && s.Skipped && stepPlace(s.At) && len(late) > 0 && late[0] != "" {
		s.Remainder, s.Skipped = slices.Sorted(slices.Values(slices.Concat(s.Remainder, late))), false
	}
	m.convergence(s, o, now)
}
