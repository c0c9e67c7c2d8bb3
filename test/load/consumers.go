// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/consumer"
)

// readRing is the HashRing that has consumers: pods without a kubelet, at addresses of loopback.
const readRing = "read"

// readerDelay is how long a consumer takes to answer.
const readerDelay = 10 * time.Millisecond

// What acknowledgement must show.
const (
	maxAskedSeconds   = 60
	maxAppliedSeconds = 20
	maxDeadSeconds    = 60
	// maxStatusWrites is how often the status is written for a publication: once for itself, and for those who have it.
	maxStatusWrites = 11
	// maxAskingPercent is how much of a processor the operator takes while all have what is published.
	maxAskingPercent = 20
)

// acknowledge measures what it takes to ask the consumers of a HashRing.
func (l *load) acknowledge(ctx context.Context) error {
	if l.consumers == 0 {
		return nil
	}
	r, stop, err := startReaders()
	if err != nil {
		return err
	}
	l.stopReaders = stop
	l.say("creating %d pods that read a ring", l.consumers)
	if err := l.createReaders(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *readers) error{l.firstRound, l.publishToReaders, l.restingReaders, l.deadReaders} {
		if err := step(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) addRead(kind kind, name string, figure, limit float64) {
	l.add(kind, fmt.Sprintf("%d consumers: %s", l.consumers, name), figure, limit)
}

func (l *load) createReaders(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for n := range l.consumers {
		group.Go(func() error {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: l.cluster.namespace, Name: fmt.Sprintf("reader-%05d", n), Labels: map[string]string{"app": "reader"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "reader", Image: "reader"}}},
			}
			if err := l.cluster.admin.Create(ctx, pod); err != nil {
				return fmt.Errorf("creating pod %s: %w", pod.Name, err)
			}
			ip := readerAddress(n).String()
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}}
			if err := l.cluster.admin.Status().Update(ctx, pod); err != nil {
				return fmt.Errorf("writing the status of pod %s: %w", pod.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// firstRound makes the HashRing, and waits until all of its consumers were asked.
func (l *load) firstRound(ctx context.Context, r *readers) error {
	l.say("asking them for the first time")
	ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: l.cluster.namespace, Name: readRing}}
	ring.Spec.Backends = l.static(l.rings) // Addresses that no other ring has.
	ring.Spec.Consumers = &v1alpha1.Consumers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "reader"}}, Port: r.port}
	began := time.Now()
	if err := l.cluster.admin.Create(ctx, ring); err != nil {
		return err
	}
	asked := func(s v1alpha1.HashRingStatus) bool {
		return s.Consumers != nil && int(s.Consumers.Total) == l.consumers
	}
	if err := l.awaitRead(ctx, asked); err != nil {
		return err
	}
	l.addRead(timed, "seconds from the HashRing until all were asked, with the list of pods, at most", time.Since(began).Seconds(), maxAskedSeconds)
	if err := r.load(ctx, l); err != nil {
		return err
	}
	return l.awaitRead(ctx, isApplied)
}

func isApplied(s v1alpha1.HashRingStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, string(v1alpha1.ConditionApplied))
}

// awaitRead waits until the status is as it shall be.
func (l *load) awaitRead(ctx context.Context, done func(v1alpha1.HashRingStatus) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		ring := &v1alpha1.HashRing{}
		if err := l.cluster.admin.Get(ctx, client.ObjectKey{Namespace: l.cluster.namespace, Name: readRing}, ring); err != nil {
			return fmt.Errorf("waiting for consumers: %w", err)
		}
		if done(ring.Status) {
			return nil
		}
		if err := pause(ctx, poll); err != nil {
			return fmt.Errorf("the consumers are %+v: %w", ring.Status.Consumers, err)
		}
	}
}

// publishToReaders publishes another ring, which all consumers take at once, and measures until that is known.
func (l *load) publishToReaders(ctx context.Context, r *readers) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	if _, err := l.cluster.writes(); err != nil {
		return err
	}
	published, known := l.watch.next(readRing, l.watch.generation(readRing))
	patch := []byte(`[{"op": "replace", "path": "/spec/backends/0/weight", "value": 2}]`)
	if !known {
		return fmt.Errorf("the ring that is read was published though nothing changed")
	}
	ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: l.cluster.namespace, Name: readRing}}
	if err := l.cluster.admin.Patch(ctx, ring, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("changing the ring that is read: %w", err)
	}
	var at time.Time
	select {
	case at = <-published:
	case <-time.After(settleTimeout):
		return fmt.Errorf("the ring that is read was not published")
	}
	if err := r.load(ctx, l); err != nil {
		return err
	}
	generation := l.watch.generation(readRing)
	err := l.awaitRead(ctx, func(s v1alpha1.HashRingStatus) bool {
		return isApplied(s) && s.Consumers != nil && s.Consumers.Generation == generation
	})
	if err != nil {
		return err
	}
	l.addRead(timed, "seconds from a publication, which they take at once, until the status says that all have it, at most", time.Since(at).Seconds(), maxAppliedSeconds)
	writes, err := l.cluster.writes()
	l.say("writes for it: %v", writes)
	l.addRead(exact, "writes of the status for that, at most", float64(writes["patch hashrings/status"]), maxStatusWrites)
	return err
}

// restingReaders measures what the operator does while all consumers have what is published.
func (l *load) restingReaders(ctx context.Context, r *readers) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	if _, err := l.cluster.writes(); err != nil {
		return err
	}
	r.look()
	cpu, err := l.operator.gauge(ctx, "process_cpu_seconds_total")
	if err != nil {
		return err
	}
	seconds := max(l.seconds, 65) // Each of them is asked within a minute.
	if err := pause(ctx, time.Duration(seconds)*time.Second); err != nil {
		return err
	}
	after, err := l.operator.gauge(ctx, "process_cpu_seconds_total")
	if err != nil {
		return err
	}
	goroutines, err := l.operator.gauge(ctx, "go_goroutines")
	if err != nil {
		return err
	}
	asked, requests := r.look()
	writes, err := l.countWrites()
	l.addRead(exact, fmt.Sprintf("writes within %d s in which nothing changed, at most", seconds), writes, 0)
	l.addRead(timed, "requests a second meanwhile", float64(requests)/float64(seconds), unlimited)
	l.addRead(exact, "consumers that were not asked meanwhile, at most", float64(l.consumers-asked), 0)
	l.addRead(timed, "percent of a processor meanwhile, at most", 100*(after-cpu)/float64(seconds), maxAskingPercent)
	l.addRead(timed, "goroutines of the operator", goroutines, unlimited)
	r.mu.Lock() // One that hangs counts here for longer than the operator waits for it.
	defer r.mu.Unlock()
	l.addRead(exact, "requests on their way at a time, of 10 ms each, at most", float64(r.most), consumer.MaxAskingOfRing)
	return err
}

// deadReaders has a tenth of the consumers hang, and measures until that is known.
func (l *load) deadReaders(ctx context.Context, r *readers) error {
	r.mu.Lock()
	r.dead = func(a netip.Addr) bool { return a.As4()[3]%10 == 0 }
	r.mu.Unlock()
	want := int32(0)
	for n := range l.consumers {
		if r.dead(readerAddress(n)) {
			want++
		}
	}
	l.say("%d of them hang", want)
	began := time.Now()
	err := l.awaitRead(ctx, func(s v1alpha1.HashRingStatus) bool { return s.Consumers.Unreachable == want })
	if err != nil {
		return err
	}
	// One is asked within a minute, and answers within its time-out; the status follows within half a minute.
	l.addRead(timed, "seconds beyond a minute until a tenth that hangs was found out, at most", max(time.Since(began).Seconds()-60, 0), maxDeadSeconds)
	r.mu.Lock()
	r.dead = func(netip.Addr) bool { return false }
	r.mu.Unlock()
	return l.awaitRead(ctx, isApplied)
}

// gauge reads a metric without labels.
func (o *operator) gauge(ctx context.Context, name string) (float64, error) {
	families, err := o.scrape(ctx)
	if err != nil {
		return 0, err
	}
	var metric *dto.Metric
	if list := families[name].GetMetric(); len(list) == 1 {
		metric = list[0]
	}
	return metric.GetGauge().GetValue() + metric.GetCounter().GetValue(), nil
}
