// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// reportInterval is the least time between two writes of a status that differ in nothing but which backends are meant, whether
// a ring of them waits for minInterval, and what consumers have: endpoints can come and go a thousand times a second.
const reportInterval = time.Second

// Writes that only say what consumers have are few in the long run besides, because a pod can say something else each time that it
// is asked: one in consumerInterval, and consumerBurst at a time, which is enough for consumers that follow a publication.
const (
	consumerInterval = 30 * time.Second
	consumerBurst    = 10
)

// reportPacer keeps such writes apart. It remembers when it last wrote, and no decision depends on that: after a restart the
// first write comes at once. The zero value has written nothing. It is safe for concurrent use.
type reportPacer struct {
	mu   sync.Mutex
	last map[types.UID]reported
}

// reported are the writes of one status.
type reported struct {
	at time.Time
	// consumers is what is left of writes that only say what consumers have.
	consumers *rate.Limiter
}

// wait returns how long the status has to wait; 0 where it says something that does not wait.
func (p *reportPacer) wait(ring *v1alpha1.HashRing, status v1alpha1.HashRingStatus, now time.Time) time.Duration {
	if !equality.Semantic.DeepEqual(lasting(status), lasting(ring.Status)) {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last, wrote := p.last[ring.UID]
	age := now.Sub(last.at)
	if !wrote || age < 0 {
		return 0
	}
	wait := reportInterval - age
	if missing := 1 - last.consumers.TokensAt(now); missing > 0 && onlyConsumers(status, ring.Status) {
		wait = max(wait, time.Duration(missing*float64(consumerInterval)))
	}
	return max(wait, 0)
}

// wrote remembers a write.
func (p *reportPacer) wrote(ring *v1alpha1.HashRing, status v1alpha1.HashRingStatus, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[types.UID]reported{}
	}
	maps.DeleteFunc(p.last, func(_ types.UID, last reported) bool { return now.Sub(last.at) >= consumerBurst*consumerInterval })
	last, known := p.last[ring.UID]
	if !known {
		last.consumers = rate.NewLimiter(rate.Every(consumerInterval), consumerBurst)
	}
	if onlyConsumers(status, ring.Status) {
		last.consumers.AllowN(now, 1)
	}
	last.at = now
	p.last[ring.UID] = last
}

// onlyConsumers says that two statuses differ in nothing but what consumers have.
func onlyConsumers(a, b v1alpha1.HashRingStatus) bool {
	return equality.Semantic.DeepEqual(withoutConsumers(a), withoutConsumers(b))
}

// withoutConsumers returns a status without what consumers have, and which of them were touched. It shares what is the same.
func withoutConsumers(s v1alpha1.HashRingStatus) v1alpha1.HashRingStatus {
	s.Consumers, s.Refresh = nil, nil
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c metav1.Condition) bool {
		return c.Type == string(v1alpha1.ConditionApplied) || c.Type == string(v1alpha1.ConditionRefreshed)
	})
	return s
}

// lasting returns a status without what changes with every endpoint and every consumer. It shares what is the same.
func lasting(s v1alpha1.HashRingStatus) v1alpha1.HashRingStatus {
	s = withoutConsumers(s)
	s.Members, s.Pending = nil, nil
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool { return follows(c, s.Hold) })
	for i := range s.Conditions {
		s.Conditions[i].Message, s.Conditions[i].LastTransitionTime = "", metav1.Time{}
	}
	if s.Hold != nil {
		s.Hold = &v1alpha1.Hold{Reason: s.Hold.Reason}
	}
	if s.Candidate != nil {
		s.Candidate = &v1alpha1.CandidateRing{Reason: s.Candidate.Reason, Slot: s.Candidate.Slot}
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
