// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/internal/agentapi"
)

const (
	// hurryDelay is how long a pod that is current is left alone while there is a hurry; as the other delays, down to half of it.
	hurryDelay = 15 * time.Second
	// MaxHurry is how far ahead the end of a hurry can be, so that nobody who forgets about it makes it last.
	MaxHurry = 15 * time.Minute
)

// Counted is what an agent has counted since it started, of the two rings that it has.
type Counted struct {
	// Started is when the agent began to count; zero where it does not say so. With another one, the counters begin anew.
	Started time.Time
	// Stable and Candidate are zero where there is no such ring.
	Stable, Candidate RingCounts
}

// RingCounts are the counters of one ring in one role. They can be lower than before: in another process, and where an agent has
// forgotten a ring for lack of room.
type RingCounts struct {
	// Digest is that of the ring's snapshot. With another one the counters are others.
	Digest string
	// What is counted, agentapi.RingCounters says.
	Selections, Failovers, Errors uint64
}

// Sample is what a pod had counted when it answered last.
type Sample struct {
	Pod string
	UID types.UID
	// Datacenter is where the pod says that it is, "" where it does not.
	Datacenter string
	// Started is when it began to count, zero where it does not say so; At is when its answer came.
	Started, At time.Time
	// Stable and Candidate are zero where it has no such ring.
	Stable, Candidate RingCounts
}

// countsOf returns the counters that an agent has of a ring in a role. Where it has several, because the ring had several revisions,
// they are added.
func countsOf(rings []agentapi.RingCounters, role, digest string) RingCounts {
	c := RingCounts{Digest: digest}
	if digest == "" {
		return c
	}
	for _, r := range rings {
		if r.Role == role && r.Digest == digest {
			c.Selections += r.Selections
			c.Failovers += r.Failovers
			c.Errors += r.Errors
		}
	}
	return c
}

// count keeps the counters of an answer. Digests are those of what the pod said, so that they are in memory once.
func (p *pod) count(c Counted, now time.Time) {
	c.Stable.Digest, c.Candidate.Digest = p.known.Said.Stable, p.known.Said.Candidate
	p.counted, p.countedAt = c, now
}

// Samples returns the counters of the newest answer of each pod of a ring that has answered, in the order of their names; nil
// for a ring that is not followed. A pod that does not answer any more keeps the sample of when it did. The caller owns the list.
func (p *Poller) Samples(ring types.NamespacedName) []Sample {
	p.mu.Lock()
	f := p.followers[ring]
	p.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.samples()
}

func (f *follower) samples() []Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]Sample, 0, len(f.pods))
	for _, p := range f.pods {
		if p.known.Said == nil {
			continue
		}
		list = append(list, Sample{
			Pod: p.Name, UID: p.UID, Datacenter: p.known.Said.Datacenter, Started: p.counted.Started, At: p.countedAt,
			Stable: p.counted.Stable, Candidate: p.counted.Candidate,
		})
	}
	return list
}

// Hurry has the pods of a ring that are current asked every 15 seconds or sooner instead of every minute, until a moment that is
// at most [MaxHurry] ahead; a later call replaces it. It has no effect on a ring that is not followed, and ends where Follow begins
// anew. The limits of how many requests there can be at a time stay as they are.
func (p *Poller) Hurry(ring types.NamespacedName, until time.Time) {
	p.mu.Lock()
	f := p.followers[ring]
	p.mu.Unlock()
	if f != nil {
		f.hurry(until, time.Now())
	}
}

func (f *follower) hurry(until, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if latest := now.Add(MaxHurry); until.After(latest) {
		until = latest
	}
	f.hurried = until
	hastened := false
	for _, p := range f.pods {
		hastened = f.hasten(p, now) || hastened
	}
	if hastened {
		f.signal()
	}
}

// hasten has a pod that is current asked sooner where there is a hurry, and says whether that changed when it is. Who is asked soon
// anyway is left as he is, however often there is a hurry.
func (f *follower) hasten(p *pod, now time.Time) bool {
	if !p.current || !f.hurried.After(now) || !p.due.After(now.Add(hurryDelay)) {
		return false
	}
	p.due = now.Add(jittered(hurryDelay))
	return true
}
