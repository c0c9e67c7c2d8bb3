// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/ringcache"
	"github.com/ringwright/ringwright/internal/telemetry"
)

// cluster is pods, what they say, and how often they were asked.
type cluster struct {
	mu   sync.Mutex
	pods map[string]Pod
	// answers are by address; one without an answer hangs until its time-out.
	answers map[string]plan.Answer
	took    time.Duration
	asked   map[string]int
	// now and most are how many requests are and were on their way.
	now, most, changes, lists int
}

func newCluster(n int) *cluster {
	c := &cluster{pods: map[string]Pod{}, answers: map[string]plan.Answer{}, asked: map[string]int{}}
	for i := range n {
		c.add(i)
	}
	return c
}

func (c *cluster) add(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, ip := fmt.Sprintf("p%04d", i), fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	c.pods[name] = Pod{Name: name, UID: types.UID(name), IP: ip}
	c.answers[ip] = answer(1)
}

func (c *cluster) set(p Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods[p.Name] = p
}

// say has the pods that are in use from one to another answer with a generation; 0 has them hang.
func (c *cluster) say(from, to int, generation int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := from; i < to; i++ {
		ip := fmt.Sprintf("10.0.%d.%d", i/256, i%256)
		if generation == 0 {
			delete(c.answers, ip)
		} else {
			c.answers[ip] = answer(generation)
		}
	}
}

func asks(generation int64) *plan.Asked {
	return &plan.Asked{Ring: "cdn/edge", UID: "1", Generation: generation, Stable: digest}
}

func answer(generation int64) plan.Answer {
	return plan.Answer{Ready: true, Asked: *asks(generation), Datacenter: "lab01"}
}

func (c *cluster) list(_ context.Context, _ string, selector labels.Selector) ([]Pod, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	if !selector.Matches(labels.Set{"app": "edge"}) {
		return nil, nil
	}
	return slices.Collect(maps.Values(c.pods)), nil
}

func (c *cluster) ask(ctx context.Context, ip string, _ int32, timeout time.Duration) (plan.Answer, error) {
	c.mu.Lock()
	said, answers := c.answers[ip]
	c.asked[ip]++
	c.now++
	c.most = max(c.most, c.now)
	took := c.took
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.now--; c.mu.Unlock() }()
	if !answers {
		took = timeout
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return plan.Answer{}, ctx.Err()
	}
	if !answers {
		return plan.Answer{}, failf(failedTimeout, "no answer within %v", timeout)
	}
	return said, nil
}

func (c *cluster) changed(types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
}

// count returns how many requests there were since it was last asked, and how many times something was told.
func (c *cluster) count() (requests, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.asked {
		requests += n
	}
	changes = c.changes
	c.asked, c.changes = map[string]int{}, 0
	return requests, changes
}

var edge = types.NamespacedName{Namespace: "cdn", Name: "edge"}

func ring() *v1alpha1.HashRing {
	return &v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: edge.Namespace, Name: edge.Name, UID: "1"},
		Spec: v1alpha1.HashRingSpec{
			Consumers: &v1alpha1.Consumers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "edge"}}},
		},
	}
}

// testPoller runs a poller of a cluster with a clock of its own.
func testPoller(t *testing.T, c *cluster, test func(p *Poller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := NewPoller(Options{List: c.list, Ask: c.ask, Changed: c.changed})
		done := make(chan error, 1)
		go func() { done <- p.Start(ctx) }()
		synctest.Wait()
		test(p)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// after lets time pass until everything that happens within it has.
func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // The clock is synctest's.
	synctest.Wait()
}

// current counts those that are, of those that are known.
func current(known *plan.Consumers, generation int64) (current, all int) {
	if known == nil {
		return 0, -1
	}
	for _, one := range known.List {
		if reason, _ := asks(generation).Judge(one); reason == "" {
			current++
		}
	}
	return current, len(known.List)
}

func wantCurrent(t *testing.T, known *plan.Consumers, generation int64, want, wantAll int) {
	t.Helper()
	if got, all := current(known, generation); got != want || all != wantAll {
		t.Errorf("%d of %d are current, want %d of %d", got, all, want, wantAll)
	}
}

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

// TestSchedule: a pod that is current is left alone for half a minute to one, one that is not is asked less and less often.
func TestSchedule(t *testing.T) {
	c := newCluster(100)
	testPoller(t, c, func(p *Poller) {
		p.Follow(ring())
		p.Publish(edge, asks(1), time.Now())
		after(3 * time.Second)
		c.count()
		after(10 * time.Minute)
		requests, changes := c.count()
		if requests < 1000 || requests > 2000 || changes != 0 {
			t.Errorf("%d requests of 100 current pods in 10 minutes, %d changes", requests, changes)
		}
		c.mu.Lock()
		c.lists = 0
		c.mu.Unlock()
		var perSecond []int
		for range 60 {
			after(time.Second)
			n, _ := c.count()
			perSecond = append(perSecond, n)
		}
		if most := slices.Max(perSecond); most > 20 {
			t.Errorf("%d requests in one second: %v", most, perSecond)
		}
		if c.lists > 2 {
			t.Errorf("the pods were listed %d times in a minute", c.lists)
		}

		p.Publish(edge, asks(2), time.Now())
		p.Publish(edge, asks(2), time.Now())
		after(2500 * time.Millisecond)
		if requests, changes := c.count(); requests < 100 || requests > 250 || changes != 0 {
			t.Errorf("after a publication %d requests, %d changes", requests, changes)
		}
		after(time.Minute)
		c.count()
		after(10 * time.Minute)
		if requests, changes := c.count(); requests < 100*600/15 || requests > 100*600*2/15 || changes != 0 {
			t.Errorf("%d requests of 100 late pods in 10 minutes, %d changes", requests, changes)
		}

		p.Publish(edge, asks(3), time.Now()) // However long they have been late, they are asked soon again.
		after(6 * time.Second)
		if requests, _ := c.count(); requests < 200 {
			t.Errorf("after a publication %d requests of late pods", requests)
		}

		c.say(0, 100, 0) // Now they are dead.
		after(5 * time.Minute)
		c.count()
		after(10 * time.Minute)
		if requests, changes := c.count(); requests < 100*10 || requests > 2*100*10 || changes != 0 {
			t.Errorf("%d requests of 100 dead pods in 10 minutes, %d changes", requests, changes)
		}
	})
}

// TestLimits: however many pods there are, and however long they take, requests have their limits, and a ring whose pods are all
// dead does not keep another one from being asked.
func TestLimits(t *testing.T) {
	c := newCluster(3000)
	c.say(100, 3000, 0)
	testPoller(t, c, func(p *Poller) {
		p.Follow(ring())
		p.Publish(edge, asks(1), time.Now())
		after(time.Second)
		if c.most != MaxAskingOfRing {
			t.Errorf("%d requests at a time of one ring", c.most)
		}
		for i := range 5 {
			other := ring()
			other.Name, other.UID = fmt.Sprint("other", i), types.UID(fmt.Sprint(i))
			p.Follow(other)
		}
		after(10 * time.Minute)
		if c.most != MaxAsking {
			t.Errorf("%d requests at a time", c.most)
		}
		wantCurrent(t, p.Follow(ring()), 1, 100, 3000)
		c.say(0, 100, 2)
		p.Publish(edge, asks(2), time.Now())
		after(15 * time.Second)
		wantCurrent(t, p.Follow(ring()), 2, 100, 3000) // In spite of the dead ones.
	})
}

// TestSubject: with another selector, port, time-out or UID nothing is known, and what was on its way counts for nothing.
func TestSubject(t *testing.T) {
	c := newCluster(2)
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

// TestLatency: it counts what this process has published, for the pods that were there, once.
func TestLatency(t *testing.T) {
	c := newCluster(4)
	metrics := telemetry.New(noRings{}, ringcache.New(1), prometheus.NewRegistry())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := NewPoller(Options{List: c.list, Ask: c.ask, Changed: c.changed, Metrics: metrics})
		p.Follow(ring()) // Before it runs, as a reconciler may be faster.
		go func() { _ = p.Start(ctx) }()
		c.say(0, 1, 7)
		after(time.Second)
		p.Publish(edge, asks(1), time.Now())
		c.say(0, 1, 1)
		after(5 * time.Second)
		wantLatency(t, metrics, 0, 0) // It may have been published long ago.
		c.say(0, 4, 2)
		p.Publish(edge, asks(2), time.Now())
		after(5 * time.Second)
		wantLatency(t, metrics, 4, 1)
		p.Publish(edge, asks(3), time.Now())
		c.add(4)
		c.say(4, 5, 3)
		p.PodChanged("cdn", labels.Set{"app": "edge"})
		after(5 * time.Second)
		wantLatency(t, metrics, 4, 1) // A new pod says nothing about how long it takes.
		starting := Pod{Name: "starting", UID: "starting"}
		c.set(starting)
		p.PodChanged("cdn", labels.Set{"app": "edge"})
		after(2 * time.Second)
		c.say(0, 4, 4)
		p.Publish(edge, asks(4), time.Now()) // The one before has come to one pod only.
		after(10 * time.Second)
		wantLatency(t, metrics, 8, 1)
		starting.IP = "10.0.9.9"
		c.set(starting)
		c.answers[starting.IP] = answer(4)
		p.PodChanged("cdn", labels.Set{"app": "edge"})
		after(90 * time.Second)
		wantLatency(t, metrics, 8, 1) // Neither one that started meanwhile, nor those that were asked again.
		c.say(4, 5, 4)
		after(30 * time.Second)
		wantLatency(t, metrics, 9, 2)
		after(5 * time.Minute)
		wantLatency(t, metrics, 9, 2)
	})
}

func wantLatency(t *testing.T, m *telemetry.Metrics, one, all int) {
	t.Helper()
	for consumers, want := range map[string]int{"one": one, "all": all} {
		if got := observations(t, m, consumers); got != want {
			t.Errorf("%d latencies of %s, want %d", got, consumers, want)
		}
	}
}

// noRings lists none.
type noRings struct{ client.Reader }

func (noRings) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// observations counts what the histogram of latencies has observed.
func observations(t *testing.T, m *telemetry.Metrics, consumers string) int {
	t.Helper()
	collected := make(chan prometheus.Metric, 100)
	m.Collect(collected)
	close(collected)
	for metric := range collected {
		var one dto.Metric
		if err := metric.Write(&one); err != nil {
			t.Fatal(err)
		}
		if h := one.GetHistogram(); h != nil && len(one.GetLabel()) == 1 && one.GetLabel()[0].GetValue() == consumers {
			return int(h.GetSampleCount())
		}
	}
	t.Fatalf("no histogram of %s", consumers)
	return 0
}
