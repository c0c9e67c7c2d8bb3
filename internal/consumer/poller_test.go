// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// TestPoller is the life of a ring: nothing is known before all have been asked, and each change is.
func TestPoller(t *testing.T) {
	c := newCluster(5)
	c.took = time.Second
	testPoller(t, c, func(p *Poller) {
		wantCurrent(t, p.Follow(ring()), 1, 0, -1)
		p.Publish(edge, asks(1), time.Now())
		after(500 * time.Millisecond)
		wantCurrent(t, p.Follow(ring()), 1, 0, -1)
		after(3 * time.Second)
		wantCurrent(t, p.Follow(ring()), 1, 5, 5)
		if _, changes := c.count(); changes == 0 {
			t.Error("nothing was told")
		}

		p.Publish(edge, asks(2), time.Now()) // The pods have it one after the other.
		wantCurrent(t, p.Follow(ring()), 2, 0, 5)
		c.say(0, 3, 2)
		after(4 * time.Second)
		wantCurrent(t, p.Follow(ring()), 2, 3, 5)
		c.say(3, 5, 2)
		after(20 * time.Second)
		wantCurrent(t, p.Follow(ring()), 2, 5, 5)

		c.say(0, 1, 0) // One hangs.
		after(62 * time.Second)
		known := p.Follow(ring())
		wantCurrent(t, known, 2, 4, 5)
		if one := known.List[0]; one.Failure != "no answer within 2s" || one.Said == nil || one.Said.Datacenter != "lab01" {
			t.Errorf("what is known of a pod that hangs: %+v", one)
		}
	})
}

// TestPods: those that come, go, move and come back are asked soon, and counted at once.
func TestPods(t *testing.T) {
	c := newCluster(3)
	edgePods := labels.Set{"app": "edge"}
	testPoller(t, c, func(p *Poller) {
		p.Follow(ring())
		p.Publish(edge, asks(1), time.Now())
		after(3 * time.Second)
		wantCurrent(t, p.Follow(ring()), 1, 3, 3)
		c.count()

		c.add(3)
		p.PodChanged("other", edgePods)
		p.PodChanged("cdn", labels.Set{"app": "other"})
		after(2 * time.Second)
		wantCurrent(t, p.Follow(ring()), 1, 3, 3)
		p.PodChanged("cdn", edgePods)
		after(2 * time.Second)
		wantCurrent(t, p.Follow(ring()), 1, 4, 4)

		delete(c.pods, "p0001")
		moved := c.pods["p0002"]
		moved.IP, c.answers["10.0.9.9"] = "10.0.9.9", answer(7)
		c.pods["p0002"] = moved
		c.pods["p0003"] = Pod{Name: "p0003", UID: "another"}
		p.PodChanged("cdn", edgePods)
		after(2 * time.Second)
		known := p.Follow(ring())
		wantCurrent(t, known, 1, 1, 3)
		if known.List[1].Said.Generation != 7 || known.List[2].Waits != "it has no address yet" || known.List[2].Said != nil {
			t.Errorf("known: %+v", known.List) // p0003 is another pod of the name, for which the one before does not speak.
		}

		c.add(4) // Nobody tells of it.
		after(61 * time.Second)
		wantCurrent(t, p.Follow(ring()), 1, 2, 4)
	})
}

// TestSubject: with another selector, port, time-out or UID nothing is known, and what was on its way counts for nothing.
func TestSubject(t *testing.T) {
	c := newCluster(2)
	c.took = time.Second // So that nothing is known at once.
	testPoller(t, c, func(p *Poller) {
		p.Follow(ring())
		p.Publish(edge, asks(1), time.Now())
		after(3 * time.Second)
		wantCurrent(t, p.Follow(ring()), 1, 2, 2)
		for name, change := range map[string]func(r *v1alpha1.HashRing){
			"selector": func(r *v1alpha1.HashRing) { r.Spec.Consumers.Selector.MatchLabels = map[string]string{"app": "other"} },
			"port":     func(r *v1alpha1.HashRing) { r.Spec.Consumers.Port = 80 },
			"timeout": func(r *v1alpha1.HashRing) {
				r.Spec.Consumers.Timeout = &metav1.Duration{Duration: time.Second}
			},
			"uid": func(r *v1alpha1.HashRing) { r.UID = "2" },
		} {
			other := ring()
			change(other)
			if known := p.Follow(other); known != nil {
				t.Errorf("with another %s: %+v", name, known)
			}
			after(3 * time.Second)
			if known := p.Follow(other); known == nil {
				t.Errorf("with another %s nobody is asked", name)
			}
			p.Follow(ring())
			after(3 * time.Second)
		}
		bad := ring()
		bad.Spec.Consumers.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "No"}}
		if known := p.Follow(bad); known == nil || known.Invalid != `"No" is not a valid label selector operator` {
			t.Errorf("a bad selector: %+v", known)
		}
		p.Follow(ring())
		after(3 * time.Second)
		c.count()
		none := ring()
		none.Spec.Consumers = nil
		if known := p.Follow(none); known != nil {
			t.Errorf("without consumers: %+v", known)
		}
		p.Publish(edge, asks(2), time.Now())
		after(5 * time.Minute)
		if requests, _ := c.count(); requests != 0 || len(p.followers) != 0 {
			t.Errorf("%d requests for nobody, %d rings are followed", requests, len(p.followers))
		}
	})
}

// TestGone: the answer of a pod that is gone is no news.
func TestGone(t *testing.T) {
	f := newFollower(NewPoller(Options{}), edge, subject{}, labels.Everything())
	now := time.Unix(1_800_000_000, 0)
	f.merge([]Pod{{Name: "a", UID: "1", IP: "10.0.0.1"}, {Name: "b", UID: "2"}}, now)
	asking := f.next(now)
	if asking == nil || asking.Name != "a" || f.next(now) != nil {
		t.Fatalf("asking %+v", asking)
	}
	if changed := f.merge([]Pod{{Name: "b", UID: "2"}}, now); !changed || f.consumers() == nil {
		t.Error("that it is gone is not told")
	}
	if f.finish(asking, answer(1), nil, now) || f.asking != 0 {
		t.Errorf("its answer is told, or counts as being on its way: %d", f.asking)
	}
}

// TestNoPods: where there is none, that is known too.
func TestNoPods(t *testing.T) {
	c := newCluster(0)
	testPoller(t, c, func(p *Poller) {
		p.Follow(ring())
		after(time.Second)
		wantCurrent(t, p.Follow(ring()), 1, 0, 0)
		if _, changes := c.count(); changes != 1 {
			t.Errorf("told %d times", changes)
		}
	})
}
