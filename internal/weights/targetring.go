// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// ringBackends keeps the backends of the rings that were read last, by their digests: a ring changes seldom and can have megabytes.
type ringBackends struct {
	mu       sync.Mutex
	byDigest map[string][]ring.Backend
}

// maxRings is how many rings are kept.
const maxRings = 64

// hashRing returns the backends of the published ring that own keys. Who is down is not ready; the pod is found by the address.
func (r *Resolver) hashRing(ctx context.Context, namespace string, target v1alpha1.WeightTarget) ([]Endpoint, error) {
	file, err := r.routing(ctx, namespace, target.Name)
	if err != nil {
		return nil, err
	}
	backends, err := r.backends(ctx, namespace, target.Name, file.Stable)
	if err != nil {
		return nil, err
	}
	pods, err := r.podsByAddress(ctx, namespace)
	if err != nil {
		return nil, err
	}
	endpoints := make([]Endpoint, 0, len(backends))
	for _, b := range backends {
		if b.Weight == 0 {
			continue
		}
		e := Endpoint{ID: b.ID, Zone: b.Zone}
		address := b.ID
		if dial, ok := file.Addresses[b.ID]; ok {
			address = dial
		}
		if host, port, err := net.SplitHostPort(address); err == nil {
			number, _ := strconv.ParseUint(port, 10, 16) // What is no number is no port: 0.
			e.Address, e.Port = host, int32(number)
		} else {
			e.Address = address
		}
		if pod, ok := pods[e.Address]; ok {
			e.Pod, e.PodUID = pod.name, pod.uid
		}
		_, down := slices.BinarySearch(file.Down, b.ID)
		e.Ready = !down
		endpoints = append(endpoints, e)
	}
	return endpoints, nil
}

// routing reads the routing file of a HashRing.
func (r *Resolver) routing(ctx context.Context, namespace, name string) (routing.File, error) {
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: plan.RoutingName(name)}
	if err := r.Live.Get(ctx, key, cm); apierrors.IsNotFound(err) {
		return routing.File{}, refused(v1alpha1.ReasonRingNotFound, "HashRing %s has no published ring: there is no ConfigMap %s", name, key.Name)
	} else if err != nil {
		return routing.File{}, fmt.Errorf("reading ConfigMap %s: %w", key.Name, err)
	}
	file, err := routing.Parse([]byte(cm.Data[routing.FileName]))
	if err != nil {
		return routing.File{}, refused(v1alpha1.ReasonRingNotFound, "ConfigMap %s cannot be read: %v", key.Name, err)
	}
	return file, nil
}

// backends returns those of a published ring.
func (r *Resolver) backends(ctx context.Context, namespace, name string, ref routing.Reference) ([]ring.Backend, error) {
	r.rings.mu.Lock()
	backends, ok := r.rings.byDigest[ref.Digest]
	r.rings.mu.Unlock()
	if ok {
		return backends, nil
	}
	var snapshot []byte
	for chunk := range ref.Files() {
		cm := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: namespace, Name: plan.ChunkName(name, ref.Slot, chunk)}
		if err := r.Live.Get(ctx, key, cm); err != nil {
			return nil, fmt.Errorf("reading ConfigMap %s: %w", key.Name, err)
		}
		snapshot = append(snapshot, cm.BinaryData[ref.Slot.ChunkFileName(chunk)]...)
	}
	if digest := ring.Digest(snapshot); digest != ref.Digest {
		return nil, fmt.Errorf("the ring of HashRing %s is on its way: its routing file names %s, its slot has %s", name, ref.Digest, digest)
	}
	opened, err := plan.OpenSnapshot(snapshot)
	if err != nil {
		return nil, fmt.Errorf("opening the ring of HashRing %s: %w", name, err)
	}
	backends = opened.Config().Backends
	r.rings.mu.Lock()
	defer r.rings.mu.Unlock()
	if r.rings.byDigest == nil || len(r.rings.byDigest) >= maxRings {
		r.rings.byDigest = map[string][]ring.Backend{}
	}
	r.rings.byDigest[ref.Digest] = backends
	return backends, nil
}

// podRef is a pod behind an address.
type podRef struct{ name, uid string }

// podsByAddress returns the pods of a namespace by their addresses, as the EndpointSlices of its Services have them.
func (r *Resolver) podsByAddress(ctx context.Context, namespace string) (map[string]podRef, error) {
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the EndpointSlices of namespace %s: %w", namespace, err)
	}
	pods := map[string]podRef{}
	for i := range list.Items {
		for _, e := range list.Items[i].Endpoints {
			if e.TargetRef == nil || e.TargetRef.Kind != "Pod" || ptr.Deref(e.Conditions.Terminating, false) {
				continue
			}
			for _, address := range e.Addresses {
				pods[address] = podRef{name: e.TargetRef.Name, uid: string(e.TargetRef.UID)}
			}
		}
	}
	return pods, nil
}

// coarse is what the operator warns of where the weights of a HashRing are too small for factors, "" where it does not or there is no such
// HashRing.
func (r *Resolver) coarse(ctx context.Context, policy *v1alpha1.WeightPolicy) (string, error) {
	name := ringOf(policy)
	if name == "" {
		return "", nil
	}
	found := &v1alpha1.HashRing{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: policy.Namespace, Name: name}, found); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	for _, w := range found.Status.Warnings {
		if w.Reason == v1alpha1.WarningCoarseWeights {
			return w.Message, nil
		}
	}
	return "", nil
}
