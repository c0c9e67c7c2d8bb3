// SPDX-License-Identifier: Apache-2.0

// Package migration is the state machine that a migration from one ring to another follows: by datacenter and share of the keys,
// forward on evidence only, and back at any time before the old ring is retired.
//
// It is pure: the same state, observation and time give the same state and effects. It takes no context, client, logger or
// clock. [Step] makes at most one transition of its table. The caller stores the state, then carries out the effects: they
// are what the state asks for and the observation lacks, so that after a crash between the two the next call returns the rest
// of them, and carrying one out twice changes nothing.
//
// What it guarantees, whatever is observed:
//
//   - no share rises before the consumers have acknowledged the split before;
//   - of what a gate says only Pass credits a soak, only Fail rolls back, and what is not known does neither; a person can skip
//     a soak, its gates and its approval, and never an acknowledgement;
//   - a share falls by rollback, by limits, or by an edit of the plan downwards, and by nothing else;
//   - before Retiring a rollback passes every hold, and after RolledBack nothing moves without a new attempt;
//   - the old ring is retired after its announced soak, with every consumer on the candidate.
//
// It does not guarantee that an observation is true: what consumers and gates say is taken as it is.
package migration
