// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// reportInterval is the least time between two writes of a status that differ in nothing but which backends are meant, and whether
// a ring of them waits for minInterval: endpoints can come and go a thousand times a second.
const reportInterval = time.Second

// reportPacer keeps such writes apart. It remembers when it last wrote, and no decision depends on that: after a restart the
// first write comes at once. The zero value has written nothing. It is safe for concurrent use.
type reportPacer struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// wait returns how long the status has to wait; 0 where it says something that does not wait.
func (p *reportPacer) wait(ring *v1alpha1.HashRing, status v1alpha1.HashRingStatus, now time.Time) time.Duration {
	if !equality.Semantic.DeepEqual(lasting(status), lasting(ring.Status)) {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	age := now.Sub(p.last[ring.UID])
	if age < 0 || age >= reportInterval {
		return 0
	}
	return reportInterval - age
}

// wrote remembers a write.
func (p *reportPacer) wrote(ring *v1alpha1.HashRing, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.UID]time.Time{}
	}
	for uid, at := range p.last {
		if now.Sub(at) >= reportInterval {
			delete(p.last, uid)
		}
	}
	p.last[ring.UID] = now
}

// lasting returns a status without what changes with every endpoint. It shares what is the same.
func lasting(s v1alpha1.HashRingStatus) v1alpha1.HashRingStatus {
	s.Members, s.Pending = nil, nil
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c metav1.Condition) bool { return follows(c, s.Hold) })
	for i := range s.Conditions {
		s.Conditions[i].Message, s.Conditions[i].LastTransitionTime = "", metav1.Time{}
	}
	if s.Hold != nil {
		s.Hold = &v1alpha1.Hold{Reason: s.Hold.Reason}
	}
	if s.Candidate != nil {
		s.Candidate = &v1alpha1.CandidateRing{Reason: s.Candidate.Reason}
	}
	if s.Backends != nil {
		counts := *s.Backends
		counts.Down, counts.Joining, counts.Leaving, counts.Reference = 0, 0, 0, 0
		s.Backends = &counts
	}
	return s
}

// follows says that a condition only sums up what the rest of the status says too, and whether a ring waits for minInterval.
func follows(c metav1.Condition, hold *v1alpha1.Hold) bool {
	switch v1alpha1.ConditionType(c.Type) {
	case v1alpha1.ConditionReady, v1alpha1.ConditionPublished, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled:
	default:
		return false
	}
	switch reason := v1alpha1.ConditionReason(c.Reason); reason {
	case v1alpha1.ReasonRingPublished, v1alpha1.ReasonCoalescing, v1alpha1.ReasonCandidateWaiting:
		return true
	default:
		return hold != nil && hold.Reason == reason
	}
}

// maxMinInterval is the largest spec.publication.minInterval that the schema takes.
const maxMinInterval = time.Hour

// publications remembers when each HashRing was published last. The status says so too, but can be behind in the cache when the
// next look comes at once. The zero value knows of none. It is safe for concurrent use.
type publications struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

// at returns when a HashRing was published last; the zero time where that is not known.
func (p *publications) at(uid types.UID) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[uid]
}

// note remembers a publication, and forgets those that no minInterval is long enough for.
func (p *publications) note(uid types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(p.last, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= maxMinInterval })
	p.last[uid] = now
}
