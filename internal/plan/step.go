// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Step is what a publication does in a migration. Each is the reason of an event too, but for StepSplit.
type Step string

// The steps.
const (
	// StepPropose publishes a candidate.
	StepPropose Step = "CandidatePublished"
	// StepSplit sends other keys to it.
	StepSplit Step = "SplitChanged"
	// StepWithdraw takes the candidate out of the routing file, then out of its slot.
	StepWithdraw Step = "CandidateWithdrawn"
	// StepPromote makes the candidate the ring that answers.
	StepPromote Step = "CandidatePromoted"
	// StepEmpty takes a ring out of a slot to which nobody is directed any more.
	StepEmpty Step = "SlotEmptied"
)

// step says what the writes of d are in a migration.
func (d *Decision) step(r *v1alpha1.HashRing, seen Observation) Step {
	if len(d.Writes) == 0 {
		return ""
	}
	before, after := lastRouting(seen), d.Publication.File
	switch {
	case before.Generation == 0: // What readers were told is restored, or the first they are told.
		return ""
	case after.Candidate != nil && (before.Candidate == nil || before.Candidate.Digest != after.Candidate.Digest):
		return StepPropose
	case after.Candidate == nil && before.Candidate != nil && before.Candidate.Digest == after.Stable.Digest,
		before.Stable.Slot != after.Stable.Slot:
		return StepPromote
	case after.Candidate == nil && before.Candidate != nil:
		return StepWithdraw
	case !sameSplit(before.Split, after.Split):
		return StepSplit
	}
	for _, cm := range d.Writes {
		if d.empties(r, cm) && seen.find(cm.Name).holdsRing() {
			return StepEmpty
		}
	}
	return ""
}

// sameSplit says that two splits send the same keys to the candidate. None, and one without shares, differ: a reader tells them apart.
func sameSplit(a, b *routing.Split) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Seed == b.Seed && maps.Equal(a.BasisPoints, b.BasisPoints)
}

// inOrder returns the ConfigMaps that are to be written. What a routing file names is there before it is written, and what is taken out
// of a slot goes after it, so that no routing file ever names what is not there.
func (d *Decision) inOrder(r *v1alpha1.HashRing, seen Observation) []ConfigMap {
	var first, last []ConfigMap
	for _, cm := range d.Publication.ConfigMaps {
		switch o := seen.find(cm.Name); {
		case o.matches(cm), d.keeps(r, o):
		case d.empties(r, cm) && o.Holder != Nobody: // Where there is none, pods that mount it wait for it.
			last = append(last, cm)
		default:
			first = append(first, cm)
		}
	}
	return append(first, last...)
}

// empties says that a ConfigMap is of the slot that holds no ring.
func (d *Decision) empties(r *v1alpha1.HashRing, cm ConfigMap) bool {
	return d.Publication.Empty != "" && inSlot(r.Name, cm.Name, d.Publication.Empty)
}

// keeps says that what is in a ConfigMap stays, although it is of the slot that holds no ring: those who have not read the newest routing
// file yet need it. Of what somebody has edited nothing is left to keep.
func (d *Decision) keeps(r *v1alpha1.HashRing, o Object) bool {
	return d.Desired.KeepsOther && o.holdsRing() && inSlot(r.Name, o.Name, d.Publication.Empty)
}
