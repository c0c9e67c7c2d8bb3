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
	"github.com/ringwright/ringwright/pkg/routing"
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

// published returns the ring that was published last, from the best source that there is. It is read live, as the cache
// holds no payload. A source that is gone, or holds something else than was seen, is passed over.
func (p *Publisher) published(ctx context.Context, r *v1alpha1.HashRing, seen plan.Observation) (*plan.Published, error) {
	for _, source := range plan.Sources(r.Status, seen) {
		found, err := p.read(ctx, r, source)
		if err != nil {
			return nil, fmt.Errorf("reading the ring before: %w", err)
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
		return p.readSlot(ctx, r, source.Digest)
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

// readSlot puts the chunks of slot a together until they are the snapshot that was seen.
func (p *Publisher) readSlot(ctx context.Context, r *v1alpha1.HashRing, digest string) (*plan.Published, error) {
	var snapshot []byte
	for chunk := range v1alpha1.MaxChunks {
		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: r.Namespace, Name: plan.ChunkName(r.Name, routing.SlotA, chunk)}
		if err := p.Live.Get(ctx, key, cm); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		snapshot = append(snapshot, cm.BinaryData[routing.SlotA.ChunkFileName(chunk)]...)
		if ring.Digest(snapshot) != digest {
			continue
		}
		opened, err := plan.OpenSnapshot(snapshot)
		if err != nil {
			return nil, nil //nolint:nilerr // Nothing can be built from it again.
		}
		return &plan.Published{Recipe: opened.Recipe(), Digest: digest}, nil
	}
	return nil, nil
}
