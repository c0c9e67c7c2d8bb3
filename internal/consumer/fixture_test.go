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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// cluster is pods, what they say, and how often they were asked.
type cluster struct {
	mu   sync.Mutex
	pods map[string]Pod
	// answers are by address; one without an answer hangs until its time-out.
	answers map[string]Answer
	took    time.Duration
	asked   map[string]int
	// now and most are how many requests are and were on their way.
	now, most, changes, lists int
}

func newCluster(n int) *cluster {
	c := &cluster{pods: map[string]Pod{}, answers: map[string]Answer{}, asked: map[string]int{}}
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

// tell has the pod with an address answer.
func (c *cluster) tell(ip string, said Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[ip] = said
}

func (c *cluster) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, name)
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

func answer(generation int64) Answer {
	return Answer{Answer: plan.Answer{Ready: true, Asked: *asks(generation), Datacenter: "lab01"}}
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

func (c *cluster) ask(ctx context.Context, ip string, _ int32, timeout time.Duration) (Answer, error) {
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
		return Answer{}, ctx.Err()
	}
	if !answers {
		return Answer{}, failf(failedTimeout, "no answer within %v", timeout)
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
