// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Publisher reads and writes what is published for HashRings.
type Publisher struct {
	// Client reads ConfigMaps from a cache that was set up with [CacheOptions], and writes.
	Client client.Client
	// Live reads from the API server. It is asked for what the cache does not have: names of ConfigMaps, because that of somebody else
	// carries no label of ours, and once for the payload of each record.
	Live client.Reader

	recipes recipes
}

// Seen is what the cluster holds of one ring, and what a write of it needs.
type Seen struct {
	plan.Observation
	objects map[string]*corev1.ConfigMap
	records []*appsv1.ControllerRevision
}

// Observe reads what is published of r and what its rings can be built from again.
func (p *Publisher) Observe(ctx context.Context, r *v1alpha1.HashRing) (Seen, error) {
	seen, err := p.observeConfigMaps(ctx, r)
	if err == nil {
		err = p.history(ctx, r, &seen)
	}
	if err == nil {
		seen.Published, err = p.published(ctx, r, seen.Observation)
	}
	if err == nil {
		seen.Kept, err = p.kept(ctx, r, seen.Observation)
	}
	if err == nil {
		seen.Pinned, err = p.pinned(ctx, r, seen.Observation)
	}
	return seen, err
}

// observeConfigMaps reads the ConfigMaps of r: those that its spec asks for, and those that an earlier spec asked for.
func (p *Publisher) observeConfigMaps(ctx context.Context, r *v1alpha1.HashRing) (Seen, error) {
	seen := Seen{objects: map[string]*corev1.ConfigMap{}}
	names := plan.Names(r)
	wanted := len(names)
	for i, name := range append(names, leftoverNames(r, names)...) {
		cm, err := p.get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, i < wanted)
		if err != nil {
			return Seen{}, fmt.Errorf("reading ConfigMap %s: %w", name, err)
		}
		if cm != nil {
			seen.objects[name] = cm
		}
		if cm != nil || i < wanted {
			seen.add(r, describe(r, name, cm))
		}
	}
	return seen, nil
}

// Published says what readers find of r, as far as the cache knows. It asks the API server for nothing.
func (p *Publisher) Published(ctx context.Context, r *v1alpha1.HashRing) (plan.PublishedState, error) {
	seen := Seen{}
	for _, name := range append(plan.Names(r), leftoverNames(r, plan.Names(r))...) {
		cm, err := p.get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, false)
		if err != nil {
			return plan.PublishedState{}, fmt.Errorf("reading ConfigMap %s: %w", name, err)
		}
		seen.add(r, describe(r, name, cm))
	}
	return plan.StateOf(r.Name, seen.Observation), nil
}

// leftoverNames returns the names that a spec with more chunks asks for.
func leftoverNames(r *v1alpha1.HashRing, wanted []string) []string {
	var names []string
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		for chunk := range routing.MaxChunks {
			if name := plan.ChunkName(r.Name, slot, chunk); !slices.Contains(wanted, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (s *Seen) add(r *v1alpha1.HashRing, o plan.Object) {
	switch o.Name {
	case plan.SlotName(r.Name, routing.SlotA):
		s.SlotA = o
	case plan.SlotName(r.Name, routing.SlotB):
		s.SlotB = o
	case plan.RoutingName(r.Name):
		s.Routing = o
	default:
		s.Chunks = append(s.Chunks, o)
	}
}

// get returns a ConfigMap without its payload, or nil where there is none. One that is not wanted is looked for in the cache
// only: without our label it is none of ours, and in nobody's way.
func (p *Publisher) get(ctx context.Context, key client.ObjectKey, wanted bool) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := p.Client.Get(ctx, key, cm)
	if apierrors.IsNotFound(err) && wanted {
		err = p.Live.Get(ctx, key, cm)
	}
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	_, err = StripPayload(cm) // What comes from the cache is stripped already.
	return cm, err
}

func describe(r *v1alpha1.HashRing, name string, cm *corev1.ConfigMap) plan.Object {
	if cm == nil {
		return plan.Object{Name: name}
	}
	object := plan.Object{
		Name: name, ContentDigest: cm.Annotations[seenContent], FileDigest: cm.Annotations[seenFile], Annotations: cm.Annotations,
		Text: cm.Data[routing.FileName],
	}
	object.Holder, object.MetadataIntact = holder(r, cm)
	return object
}
