// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// Write brings the ConfigMaps of r into the cluster, one after the other. It stops at the first failure: the order is
// what keeps the routing file from naming a snapshot that is not there. A conflict means that seen is out of date.
func (p *Publisher) Write(ctx context.Context, r *v1alpha1.HashRing, seen Seen, writes []plan.ConfigMap) error {
	for _, cm := range writes {
		if err := p.write(ctx, placeOf(r, cm.Name), seen.objects[cm.Name], cm); err != nil {
			return fmt.Errorf("writing ConfigMap %s: %w", cm.Name, err)
		}
	}
	return nil
}

// Delete takes ConfigMaps of r that no spec asks for any more out of the cluster. A conflict means that seen is out of date.
func (p *Publisher) Delete(ctx context.Context, r *v1alpha1.HashRing, seen Seen, names []string) error {
	for _, name := range names {
		old := seen.objects[name]
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name}}
		err := p.Client.Delete(ctx, cm, client.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ConfigMap %s: %w", name, err)
		}
	}
	return nil
}

func (p *Publisher) write(ctx context.Context, at place, old *corev1.ConfigMap, cm plan.ConfigMap) error {
	if old == nil {
		claimed, err := p.claim(ctx, at, cm.Name)
		if err != nil {
			return err
		}
		old = claimed
	}
	version := old.ResourceVersion
	if taken := takeover(old, cm); taken != nil {
		// Whoever added the entries owns them, so an apply without them leaves them there. Applying them with other values
		// takes them over first; the apply below then drops them.
		next, err := p.apply(ctx, at, *taken, version)
		if err != nil {
			return err
		}
		version = next
	}
	_, err := p.apply(ctx, at, cm, version)
	return err
}

// claim creates an empty ConfigMap that carries nothing but whose it is. An apply cannot tell a ConfigMap that it creates
// from one that somebody else created a moment ago; a create can.
func (p *Publisher) claim(ctx context.Context, at place, name string) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: at.namespace, Labels: at.labels, Annotations: at.annotations,
	}}
	err := p.Client.Create(ctx, cm, client.FieldOwner(v1alpha1.FieldManager))
	return cm, err
}

// apply writes cm over the object at version and returns the version that it then has.
func (p *Publisher) apply(ctx context.Context, at place, cm plan.ConfigMap, version string) (string, error) {
	configuration := applycorev1.ConfigMap(cm.Name, at.namespace).
		WithResourceVersion(version).
		WithLabels(at.labels).
		WithAnnotations(at.annotations).
		WithAnnotations(cm.Annotations).
		WithData(cm.Data).
		WithBinaryData(cm.BinaryData)
	err := p.Client.Apply(ctx, configuration, client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
	return ptr.Deref(configuration.ResourceVersion, ""), err
}

// takeover returns what to apply before cm where the payload has entries that cm does not have: those entries with values
// that nobody else would have chosen, and what of cm does not get in their way. Nil where there are none.
func takeover(old *corev1.ConfigMap, cm plan.ConfigMap) *plan.ConfigMap {
	// Equal values would be owned by both, so this one is never there already.
	removal := "removed by " + v1alpha1.FieldManager + " from version " + old.ResourceVersion
	taken := plan.ConfigMap{Name: cm.Name, Annotations: cm.Annotations, Data: map[string]string{}, BinaryData: map[string][]byte{}}
	for key := range old.Data {
		if _, ours := cm.Data[key]; !ours {
			taken.Data[key] = removal
		}
	}
	for key := range old.BinaryData {
		if _, ours := cm.BinaryData[key]; !ours {
			taken.BinaryData[key] = []byte(removal)
		}
	}
	if len(taken.Data)+len(taken.BinaryData) == 0 {
		return nil
	}
	for key, value := range cm.Data {
		if _, inTheWay := taken.BinaryData[key]; !inTheWay {
			taken.Data[key] = value
		}
	}
	for key, value := range cm.BinaryData {
		if _, inTheWay := taken.Data[key]; !inTheWay {
			taken.BinaryData[key] = value
		}
	}
	return &taken
}
