// SPDX-License-Identifier: Apache-2.0

package loadreport

import "github.com/ringwright/ringwright/api/v1alpha1"

// tally counts what became of some reports. Metrics are told once, as each costs more than a report does.
type tally struct {
	accepted map[v1alpha1.LoadSourceType]int
	refused  map[Reason]int
	by       map[refusal]int
	// last and n are the accepted ones that are not in accepted yet: most are of one source.
	last v1alpha1.LoadSourceType
	n    int
}

type refusal struct {
	source v1alpha1.LoadSourceType
	reason Reason
}

// add counts one; reason is "" where it was accepted.
func (t *tally) add(source v1alpha1.LoadSourceType, reason Reason) {
	if reason == "" {
		if source != t.last {
			t.flush()
			t.last = source
		}
		t.n++
		return
	}
	if t.refused == nil {
		t.refused, t.by = map[Reason]int{}, map[refusal]int{}
	}
	t.refused[reason]++
	t.by[refusal{known(source), reason}]++
}

func (t *tally) flush() {
	if t.n == 0 {
		return
	}
	if t.accepted == nil {
		t.accepted = map[v1alpha1.LoadSourceType]int{}
	}
	t.accepted[t.last] += t.n
	t.n = 0
}

// count tells the metrics.
func (t *tally) count(m *Metrics) {
	t.flush()
	for source, n := range t.accepted {
		m.Accepted(source, n)
	}
	for r, n := range t.by {
		m.Refused(r.source, r.reason, n)
	}
}
