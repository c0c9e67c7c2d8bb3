// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/ringcache"
	"github.com/ringwright/ringwright/internal/telemetry"
)

// TestSchedule: a pod that is current is left alone for half a minute to one, one that is not is asked less and less often.
func TestSchedule(t *testing.T) {
	const n = 20
	c := newCluster(n)
	testPoller(t, c, func(p *Poller) {
		p.Follow(ring())
		p.Publish(edge, asks(1), time.Now())
		after(3 * time.Second)
		c.count()
		after(10 * time.Minute)
		requests, changes := c.count()
		if requests < 10*n || requests > 20*n || changes != 0 {
			t.Errorf("%d requests of the current pods in 10 minutes, %d changes", requests, changes)
		}
		c.mu.Lock()
		c.lists = 0
		c.mu.Unlock()
		var perSecond []int
		for range 60 {
			after(time.Second)
			requests, _ := c.count()
			perSecond = append(perSecond, requests)
		}
		if most := slices.Max(perSecond); most > n/2 {
			t.Errorf("%d requests in one second: %v", most, perSecond)
		}
		if c.lists > 2 {
			t.Errorf("the pods were listed %d times in a minute", c.lists)
		}

		p.Publish(edge, asks(2), time.Now())
		p.Publish(edge, asks(2), time.Now())
		after(2500 * time.Millisecond)
		if requests, changes := c.count(); requests < n || requests > 5*n/2 || changes != 0 {
			t.Errorf("after a publication %d requests, %d changes", requests, changes)
		}
		after(time.Minute)
		c.count()
		after(10 * time.Minute)
		if requests, changes := c.count(); requests < n*600/15 || requests > n*600*2/15 || changes != 0 {
			t.Errorf("%d requests of late pods in 10 minutes, %d changes", requests, changes)
		}

		p.Publish(edge, asks(3), time.Now()) // However long they have been late, they are asked soon again.
		after(6 * time.Second)
		if requests, _ := c.count(); requests < 2*n {
			t.Errorf("after a publication %d requests of late pods", requests)
		}

		c.say(0, n, 0) // Now they are dead.
		after(5 * time.Minute)
		c.count()
		after(10 * time.Minute)
		if requests, changes := c.count(); requests < n*10 || requests > 2*n*10 || changes != 0 {
			t.Errorf("%d requests of dead pods in 10 minutes, %d changes", requests, changes)
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
