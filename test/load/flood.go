// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// The flood is of one HashRing, whose Service has so many EndpointSlices of so many endpoints, each written by a writer of its own.
const (
	floodRing      = "flood"
	floodSlices    = 20
	floodEndpoints = 5
	// floodChanged is how many endpoints come or go with one write of a slice.
	floodChanged = 2
	floodRate    = 1000
	// floodPace is at what rate they are sent, so that those that are late do not make it fewer than floodRate.
	floodPace    = 1100
	floodSeconds = 10
)

// What the flood must show.
const (
	maxEventMilliseconds = 1000.0 / floodRate
	maxFloodSeconds      = 1
)

// flood sends a thousand endpoint events a second to one HashRing, counts how often it is published, and measures how long the
// last state takes.
func (l *load) flood(ctx context.Context) error {
	if err := l.createFlood(ctx); err != nil {
		return err
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	before := l.watch.generation(floodRing)
	writes := floodRate*min(l.seconds, floodSeconds)/floodChanged/floodSlices - 1 // An odd number: the last state is another than the first.
	events := floodChanged * floodSlices * writes
	l.say("sending %d endpoint events to one HashRing, %d a second", events, floodRate)
	began := time.Now()
	if err := l.sendFlood(ctx, writes); err != nil {
		return err
	}
	ended := time.Now()
	at, err := l.awaitFlood(ctx)
	if err != nil {
		return err
	}
	publications := l.watch.generation(floodRing) - before
	name := fmt.Sprintf("flood of %d endpoint events: ", events)
	l.add(timed, name+"milliseconds from one to the next, at most", float64(ended.Sub(began).Microseconds())/1000/float64(events), maxEventMilliseconds)
	l.add(exact, name+"publications, at most one for each minInterval and the first", float64(publications), float64(1+at.Sub(began)/plan.DefaultMinInterval))
	l.add(timed, name+"seconds beyond minInterval until the last state was published, at most", max((at.Sub(ended)-plan.DefaultMinInterval).Seconds(), 0), maxFloodSeconds)
	return l.operator.idle(ctx, l.rings)
}

func (l *load) createFlood(ctx context.Context) error {
	meta := metav1.ObjectMeta{Namespace: l.cluster.namespace, Name: floodRing}
	objects := []client.Object{l.service(meta)}
	for k := range floodSlices {
		slice := l.slice(meta, 0)
		slice.Name, slice.Endpoints = floodSlice(k), nil
		for i := range floodEndpoints {
			slice.Endpoints = append(slice.Endpoints, floodEndpoint(k, i))
		}
		objects = append(objects, slice)
	}
	objects = append(objects, &v1alpha1.HashRing{ObjectMeta: meta, Spec: v1alpha1.HashRingSpec{
		BackendsFrom: []v1alpha1.BackendSource{{Service: v1alpha1.ServicePort{Name: meta.Name}}},
		Membership:   v1alpha1.Membership{LeaveDelay: &metav1.Duration{}, MaxRemoved: "100%"},
	}})
	for _, object := range objects {
		if err := l.cluster.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

func floodSlice(k int) string { return fmt.Sprintf("%s-%d", floodRing, k) }

func floodAddress(k, i int) string { return fmt.Sprintf("192.168.%d.%d", k, i) }

func floodEndpoint(k, i int) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{floodAddress(k, i)}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}
}

// sendFlood has every writer take the last endpoints of its slice out and put them back, so many times in all. In the end they are all
// there again, or out of every slice after an odd number. A writer that is late makes up for it.
func (l *load) sendFlood(ctx context.Context, each int) error {
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for k := range floodSlices {
		group.Go(func() error {
			object := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: l.cluster.namespace, Name: floodSlice(k)}}
			for n := range each {
				if err := pause(ctx, time.Until(began.Add(time.Duration(n)*time.Second*floodSlices*floodChanged/floodPace))); err != nil {
					return err
				}
				patch, err := json.Marshal(floodOperations(k, n%2 == 1))
				if err == nil {
					err = l.cluster.admin.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch))
				}
				if err != nil {
					return fmt.Errorf("changing %s: %w", object.Name, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// floodOperations is the patch that takes the last endpoints of a slice out, or puts them back.
func floodOperations(k int, back bool) []any {
	var list []any
	for i := range floodChanged {
		last := floodEndpoints - 1 - i
		if back {
			list = append(list, map[string]any{"op": "add", "path": "/endpoints/-", "value": floodEndpoint(k, last)})
		} else {
			list = append(list, map[string]any{"op": "remove", "path": fmt.Sprintf("/endpoints/%d", last)})
		}
	}
	return list
}

// awaitFlood waits until the backends that the last events left are on the published ring, and returns when they were seen there.
func (l *load) awaitFlood(ctx context.Context) (time.Time, error) {
	want, err := l.floodBackends(ctx)
	if err != nil {
		return time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		slot := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: l.cluster.namespace, Name: plan.SlotName(floodRing, routing.SlotA)}
		if err := l.cluster.admin.Get(ctx, key, slot); err != nil {
			return time.Time{}, fmt.Errorf("waiting for the last of the flood: %w", err)
		}
		now := time.Now()
		config, err := ring.ReadConfig(slot.BinaryData[routing.SlotA.FileName()])
		if err != nil {
			return now, fmt.Errorf("reading the published ring: %w", err)
		}
		var ids []string
		for _, b := range config.Backends {
			ids = append(ids, b.ID)
		}
		if slices.Sort(ids); slices.Equal(ids, want) {
			return now, nil
		}
		if err := pause(ctx, poll/10); err != nil {
			return now, fmt.Errorf("the last of the flood was not published: %w", err)
		}
	}
}

// floodBackends returns the sorted identities of the endpoints that there are.
func (l *load) floodBackends(ctx context.Context) ([]string, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := l.cluster.admin.List(ctx, list, client.InNamespace(l.cluster.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: floodRing})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			ids = append(ids, fmt.Sprintf("%s:%d", e.Addresses[0], port))
		}
	}
	slices.Sort(ids)
	return ids, nil
}
