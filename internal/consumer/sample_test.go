// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
)

// counted returns an answer with counters.
func counted(started time.Time, selections, errors uint64) Answer {
	said := answer(1)
	said.Counted = Counted{Started: started, Stable: RingCounts{Digest: digest, Selections: selections, Errors: errors}}
	return said
}

// TestSamples: the newest counters of each pod that has answered are there, and counters that grow are told to nobody.
func TestSamples(t *testing.T) {
	c := newCluster(3)
	c.say(2, 3, 0) // It hangs.
	testPoller(t, c, func(p *Poller) {
		if list := p.Samples(edge); list != nil {
			t.Errorf("of a ring that is not followed: %+v", list)
		}
		began := time.Now()
		c.tell("10.0.0.0", counted(began, 10, 1))
		p.Follow(ring())
		p.Publish(edge, asks(1), time.Now())
		after(10 * time.Second)
		list := p.Samples(edge)
		want := []Sample{
			{Pod: "p0000", UID: "p0000", Datacenter: "lab01", Started: began, Stable: RingCounts{Digest: digest, Selections: 10, Errors: 1}},
			{Pod: "p0001", UID: "p0001", Datacenter: "lab01", Stable: RingCounts{Digest: digest}},
		}
		for i := range list {
			if list[i].At.Before(began) || list[i].At.After(time.Now()) {
				t.Errorf("%s answered at %v", list[i].Pod, list[i].At)
			}
			list[i].At = time.Time{}
		}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}

		c.count()
		c.tell("10.0.0.0", counted(began.Add(time.Second), 7, 2)) // Another process.
		after(time.Minute)
		if got := p.Samples(edge)[0]; got.Stable.Selections != 7 || got.Stable.Errors != 2 || got.Started != began.Add(time.Second) {
			t.Errorf("after another answer: %+v", got)
		}
		if requests, changes := c.count(); requests < 2 || changes != 0 {
			t.Errorf("%d requests, %d changes are told", requests, changes)
		}
		was := p.Samples(edge)[1].At
		c.say(1, 2, 0)
		c.remove("p0000")
		p.PodChanged("cdn", labels.Set{"app": "edge"})
		after(2 * time.Minute)
		if list := p.Samples(edge); len(list) != 1 || list[0].Pod != "p0001" || list[0].At.Before(was) || time.Since(list[0].At) < time.Minute {
			t.Errorf("of a pod that is gone and one that hangs: %+v", list)
		}
	})
}

// TestSampleOfMovedPod: a pod with another address keeps its counters until it answers, one with another UID has none.
func TestSampleOfMovedPod(t *testing.T) {
	f := newFollower(NewPoller(Options{}), edge, subject{}, labels.Everything())
	now := time.Unix(1_800_000_000, 0)
	f.merge([]Pod{{Name: "a", UID: "1", IP: "10.0.0.1"}}, now)
	f.finish(f.next(now), counted(now, 5, 0), nil, now)
	f.merge([]Pod{{Name: "a", UID: "1", IP: "10.0.0.2"}}, now.Add(time.Second))
	if list := f.samples(); len(list) != 1 || list[0].Stable.Selections != 5 || list[0].At != now {
		t.Errorf("after a move: %+v", list)
	}
	f.merge([]Pod{{Name: "a", UID: "2", IP: "10.0.0.2"}}, now.Add(2*time.Second))
	if list := f.samples(); len(list) != 0 {
		t.Errorf("of another pod: %+v", list)
	}
}

// TestSampleMemory: what is kept of counters has no text of its own.
func TestSampleMemory(t *testing.T) {
	f := newFollower(NewPoller(Options{}), edge, subject{}, labels.Everything())
	now := time.Unix(1_800_000_000, 0)
	f.merge([]Pod{{Name: "a", UID: "1", IP: "10.0.0.1"}}, now)
	for range 2 {
		said := counted(now, 5, 0)
		said.Stable = string([]byte(digest))
		said.Counted.Stable.Digest = said.Stable
		f.finish(f.next(now), said, nil, now)
		now = now.Add(time.Hour)
	}
	p := f.pods[0]
	if unsafe.StringData(p.counted.Stable.Digest) != unsafe.StringData(p.known.Said.Stable) {
		t.Error("the digest is kept twice")
	}
	if size := unsafe.Sizeof(Counted{}); size > 128 {
		t.Errorf("the counters of a pod take %d bytes", size)
	}
}

// TestHurry: pods that are current are asked every 15 seconds or sooner until the end of it, however often it is said, and no others.
func TestHurry(t *testing.T) {
	const n = 20
	c := newCluster(n)
	testPoller(t, c, func(p *Poller) {
		p.Hurry(edge, time.Now().Add(time.Hour)) // Nobody follows it.
		p.Follow(ring())
		p.Publish(edge, asks(1), time.Now())
		after(3 * time.Second)
		c.count()

		p.Hurry(edge, time.Now().Add(5*time.Minute))
		after(16 * time.Second) // The loop looks every quarter of a second.
		if requests, _ := c.count(); requests < n {
			t.Errorf("%d requests in the first 16 seconds of a hurry", requests)
		}
		after(105 * time.Second) // Once is enough.
		for range 120 {          // As a controller says it again each time that it looks.
			p.Hurry(edge, time.Now().Add(5*time.Minute))
			after(time.Second)
		}
		if requests, changes := c.count(); requests < n*14 || requests > n*31 || changes != 0 {
			t.Errorf("%d requests in 225 seconds of a hurry, %d changes", requests, changes)
		}
		p.Hurry(edge, time.Now())
		after(time.Minute)
		c.count()
		after(10 * time.Minute)
		if requests, _ := c.count(); requests > 20*n {
			t.Errorf("%d requests in 10 minutes after it", requests)
		}

		p.Hurry(edge, time.Now().Add(24*time.Hour)) // It ends though nobody says so.
		after(MaxHurry + time.Minute)
		c.count()
		after(10 * time.Minute)
		if requests, _ := c.count(); requests > 20*n {
			t.Errorf("%d requests in 10 minutes after the longest hurry", requests)
		}

		c.say(0, n, 0) // Dead ones are asked as rarely as ever.
		after(5 * time.Minute)
		c.count()
		p.Hurry(edge, time.Now().Add(10*time.Minute))
		after(10 * time.Minute)
		if requests, _ := c.count(); requests > 20*n {
			t.Errorf("%d requests of dead pods in 10 minutes of a hurry", requests)
		}
	})
}
