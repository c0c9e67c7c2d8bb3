// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// cluster is a source of the ConfigMaps of a HashRing.
type cluster struct {
	reader          client.Reader
	namespace, name string
	// again is how a read is repeated that fell between two writes of the operator.
	again wait.Backoff
}

// publicationTime covers a publication: the operator writes the snapshot first and the routing file right after it.
var publicationTime = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 5}

// clusterObjects are the objects that a publication was read from.
type clusterObjects struct {
	routing *corev1.ConfigMap
	// slots are the chunks of the slots, as far as they were read; nil for one that is not there.
	slots map[routing.Slot][]chunk
	// ring is read with everything only.
	ring *v1alpha1.HashRing
}

// load gives the HashRing of a manifest the factors on its weights that the one in the cluster has from a WeightPolicy. Who may not read
// HashRings plans without them.
func (s cluster) load(ctx context.Context, hashRing *v1alpha1.HashRing) error {
	live := &v1alpha1.HashRing{}
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.name}, live)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading HashRing %s/%s: %w", s.namespace, s.name, err)
	}
	hashRing.Status.LoadWeights = live.Status.LoadWeights
	return nil
}

// chunk is a ConfigMap of a slot.
type chunk struct {
	*artifact
	// object is nil where there is none.
	object *corev1.ConfigMap
}

// revision returns the number of the revision in a slot, 0 where it has none.
func (c *clusterObjects) revision(slot routing.Slot) int64 {
	cm := c.slots[slot][0].object
	if cm == nil {
		return 0
	}
	n, err := strconv.ParseInt(cm.Annotations[v1alpha1.AnnotationRevision], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// unpublished says why what spec asks for is not what is published, as the operator reports it; nil where it is.
func (c *clusterObjects) unpublished() error {
	condition := meta.FindStatusCondition(c.ring.Status.Conditions, string(v1alpha1.ConditionPublished))
	switch {
	case condition == nil || c.ring.Status.ObservedGeneration != c.ring.Generation:
		return fmt.Errorf("the operator has not looked at generation %d of the spec yet", c.ring.Generation)
	case condition.Status != metav1.ConditionTrue:
		return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
	}
	return nil
}

// newReader returns a client for the kinds that are read. It asks the API server for these objects and nothing else:
// what it would otherwise have to discover is known.
func newReader(config *rest.Config) (client.Reader, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	for _, kind := range []string{hashRingKind, migrationKind} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
}

func (s cluster) read(ctx context.Context, what extent) (*publication, error) {
	var p *publication
	err := wait.ExponentialBackoffWithContext(ctx, s.again, func(ctx context.Context) (bool, error) {
		var err error
		p, err = s.readOnce(ctx, what)
		return err == nil && !p.betweenWrites(), err
	})
	if wait.Interrupted(err) && p != nil && ctx.Err() == nil {
		return p, nil // It stays inconsistent: whoever looks at it says in what.
	}
	return p, err
}

// unpublishedError says that a cluster has no ring of a name.
type unpublishedError struct{ missing, name, namespace string }

func (e *unpublishedError) Error() string {
	return fmt.Sprintf("%s does not exist: no ring of the name %s has been published in namespace %s", e.missing, e.name, e.namespace)
}

// betweenWrites says that a slot which the routing file names, as far as it was read, holds another snapshot than it names, or lacks a
// chunk: the operator deletes those that a newer routing file does not name.
func (p *publication) betweenWrites() bool {
	file, err := routing.Parse(p.routing.data)
	if err != nil {
		return false
	}
	refs := []routing.Reference{file.Stable}
	if file.Candidate != nil {
		refs = append(refs, *file.Candidate)
	}
	for _, ref := range refs {
		switch a := p.slots[ref.Slot]; {
		case a == nil:
		case a.err != nil && ref.Chunks > 0, a.err == nil && checkDigest(a, ref) != nil:
			return true
		}
	}
	return false
}

func (s cluster) readOnce(ctx context.Context, what extent) (*publication, error) {
	p := &publication{
		origin: fmt.Sprintf("HashRing %s/%s", s.namespace, s.name),
		slots:  map[routing.Slot]*artifact{}, cluster: &clusterObjects{slots: map[routing.Slot][]chunk{}},
	}
	if what == everything {
		p.cluster.ring = &v1alpha1.HashRing{}
		if err := s.get(ctx, hashRingKind, s.name, p.cluster.ring); err != nil {
			return nil, err
		}
	}
	var err error
	if p.cluster.routing, p.routing, err = s.configMap(ctx, plan.RoutingName(s.name), routing.FileName); err != nil {
		return nil, err
	}
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		ref, named := p.reference(slot)
		if !what.has(named) {
			continue
		}
		if err := s.readSlot(ctx, p, ref); err != nil {
			return nil, err
		}
	}
	return p, p.checkRingName(s.namespace + "/" + s.name)
}

// readSlot reads the chunks that make up a snapshot and, where the HashRing was read, those that are spare.
func (s cluster) readSlot(ctx context.Context, p *publication, ref routing.Reference) error {
	needed, count := len(ref.Files()), len(ref.Files())
	if p.cluster.ring != nil {
		count = max(count, int(p.cluster.ring.Spec.Publication.Chunks))
	}
	for i := range count {
		cm, a, err := s.configMap(ctx, plan.ChunkName(s.name, ref.Slot, i), ref.Slot.ChunkFileName(i))
		if err != nil {
			return err
		}
		p.cluster.slots[ref.Slot] = append(p.cluster.slots[ref.Slot], chunk{a, cm})
		if i >= needed {
			p.spares = append(p.spares, a)
		}
	}
	p.slots[ref.Slot] = join(p.cluster.slots[ref.Slot][:needed])
	return nil
}

// join returns the snapshot that chunks make up. It goes by the name of the first one, or of the one that is not there.
func join(chunks []chunk) *artifact {
	whole := &artifact{path: chunks[0].path}
	for _, c := range chunks {
		if c.err != nil {
			return c.artifact
		}
		whole.data = append(whole.data, c.data...)
	}
	return whole
}

// checkRingName refuses the files of another ring, such as those that were copied from another namespace.
func (p *publication) checkRingName(want string) error {
	file, err := routing.Parse(p.routing.data)
	if err == nil && file.Ring != want {
		return fmt.Errorf("%s is of ring %s, not %s", p.routing.path, file.Ring, want)
	}
	return nil
}

// configMap reads a ConfigMap and the file in it. One that is not there is an error of the artifact.
func (s cluster) configMap(ctx context.Context, name, key string) (*corev1.ConfigMap, *artifact, error) {
	cm := &corev1.ConfigMap{}
	a := &artifact{path: fmt.Sprintf("ConfigMap %s/%s", s.namespace, name)}
	if err := s.get(ctx, "ConfigMap", name, cm); err != nil {
		if apierrors.IsNotFound(err) {
			a.err = fmt.Errorf("%s does not exist", a.path)
			if name == plan.RoutingName(s.name) {
				a.err = &unpublishedError{missing: a.path, name: s.name, namespace: s.namespace}
			}
			return nil, a, nil
		}
		return nil, nil, err
	}
	if text, ok := cm.Data[key]; ok {
		a.data = []byte(text)
		return cm, a, nil
	}
	data, ok := cm.BinaryData[key]
	if !ok {
		a.err = fmt.Errorf("%s has no %s", a.path, key)
	}
	a.data = data
	return cm, a, nil
}

func (s cluster) get(ctx context.Context, kind, name string, obj client.Object) error {
	if err := s.reader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, obj); err != nil {
		return fmt.Errorf("reading %s %s/%s: %w", kind, s.namespace, name, err)
	}
	return nil
}
