// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// maxRecipeBytes is how many bytes of recipes are remembered.
const maxRecipeBytes = 64 << 20

// recipes remembers what records hold, which cannot change, so that a HashRing that is looked at again is not read again.
// The zero value is empty. It is safe for concurrent use.
type recipes struct {
	mu    sync.Mutex
	known map[types.UID]*plan.Published
	bytes int
}

func (r *recipes) find(uid types.UID) *plan.Published {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[uid]
}

func (r *recipes) remember(uid types.UID, p *plan.Published) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || r.bytes+len(p.Recipe) > maxRecipeBytes {
		r.known, r.bytes = map[types.UID]*plan.Published{}, 0 // What is still needed is read again.
	}
	if r.known[uid] == nil {
		r.known[uid] = p
		r.bytes += len(p.Recipe)
	}
}

// kept returns the rings that are needed beside the one that was published last, by their digests.
func (p *Publisher) kept(ctx context.Context, r *v1alpha1.HashRing, seen plan.Observation) (map[string]*plan.Published, error) {
	rings := map[string]*plan.Published{}
	for _, digest := range plan.Wanted(r, seen) {
		found, err := p.first(ctx, r, plan.KeptSources(digest, seen))
		if err != nil {
			return nil, fmt.Errorf("reading the candidate: %w", err)
		}
		if found != nil {
			rings[digest] = found
		}
	}
	return rings, nil
}

// published returns the ring that was published last, from the best source that there is. It is read live, as the cache
// holds no payload. A source that is gone, or holds something else than was seen, is passed over.
func (p *Publisher) published(ctx context.Context, r *v1alpha1.HashRing, seen plan.Observation) (*plan.Published, error) {
	found, err := p.first(ctx, r, plan.Sources(r.Status, seen))
	if err != nil {
		return nil, fmt.Errorf("reading the ring before: %w", err)
	}
	return found, nil
}

// first returns the ring in the first source that still has what was seen; nil where none has.
func (p *Publisher) first(ctx context.Context, r *v1alpha1.HashRing, sources []plan.Source) (*plan.Published, error) {
	for _, source := range sources {
		found, err := p.read(ctx, r, source)
		if err != nil {
			return nil, err
		}
		if found == nil {
			continue
		}
		if _, err := ring.ReadConfig(found.Recipe); err == nil {
			return found, nil
		}
	}
	return nil, nil
}

// pinned returns the ring of spec.pinnedRevision; nil where it is not kept.
func (p *Publisher) pinned(ctx context.Context, r *v1alpha1.HashRing, seen plan.Observation) (*plan.Published, error) {
	record := plan.PinnedRecord(r.Spec, seen)
	if record == nil {
		return nil, nil
	}
	found, err := p.read(ctx, r, plan.Source{Record: record, Digest: record.FileDigest})
	if err != nil {
		return nil, fmt.Errorf("reading the pinned revision: %w", err)
	}
	return found, nil
}

// read returns the ring in a source, nil where it is not there.
func (p *Publisher) read(ctx context.Context, r *v1alpha1.HashRing, source plan.Source) (*plan.Published, error) {
	if source.Record == nil {
		return p.readSlot(ctx, r, source)
	}
	if known := p.recipes.find(source.Record.UID); known != nil {
		return known, nil
	}
	object := &appsv1.ControllerRevision{}
	if err := p.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: source.Record.Name}, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	data, err := parseRecord(object)
	if err != nil || data.Digest != source.Digest || object.UID != source.Record.UID ||
		plan.RecordDigest(data.Recipe, data.Declared) != source.Record.ContentDigest {
		return nil, nil //nolint:nilerr // It is not what was seen.
	}
	found := &plan.Published{Recipe: data.Recipe, Digest: data.Digest, Declared: data.Declared}
	p.recipes.remember(object.UID, found)
	return found, nil
}

// readSlot puts the chunks of a slot together until they are the snapshot that was seen.
func (p *Publisher) readSlot(ctx context.Context, r *v1alpha1.HashRing, source plan.Source) (*plan.Published, error) {
	var snapshot []byte
	for chunk := range v1alpha1.MaxChunks {
		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: r.Namespace, Name: plan.ChunkName(r.Name, source.Slot, chunk)}
		if err := p.Live.Get(ctx, key, cm); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		snapshot = append(snapshot, cm.BinaryData[source.Slot.ChunkFileName(chunk)]...)
		if ring.Digest(snapshot) != source.Digest {
			continue
		}
		opened, err := plan.OpenSnapshot(snapshot)
		if err != nil {
			return nil, nil //nolint:nilerr // Nothing can be built from it again.
		}
		return &plan.Published{Recipe: opened.Recipe(), Digest: source.Digest}, nil
	}
	return nil, nil
}
