// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

const (
	migratedDatacenters = 330
	migratedRings       = 3
	// readersEach is how many consumers of a ring there are in a datacenter.
	readersEach = 4
)

// migrationCluster holds a RingMigration and its HashRings in memory. Of a client it has what their controller asks for.
type migrationCluster struct {
	client.Client
	migration *v1alpha1.RingMigration
	rings     []*v1alpha1.HashRing
	files     map[string]routing.File
	version   int
	writes    int
}

func newMigrationCluster() *migrationCluster {
	c := &migrationCluster{files: map[string]routing.File{}}
	hour, named := &metav1.Duration{Duration: time.Hour}, []string{}
	for i := range migratedDatacenters / 2 {
		named = append(named, datacenterName(i))
	}
	c.migration = &v1alpha1.RingMigration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "all-to-v3", UID: "migration", Generation: 1, Finalizers: []string{v1alpha1.FinalizerMigration}},
		Spec: v1alpha1.RingMigrationSpec{
			RingSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "edge"}},
			Stages: []v1alpha1.MigrationStage{
				{Name: "half", Datacenters: v1alpha1.StageDatacenters{Names: named}, Steps: []v1alpha1.MigrationStep{{Traffic: "100%"}}},
				{Name: "world", Datacenters: v1alpha1.StageDatacenters{Remainder: true}, Steps: []v1alpha1.MigrationStep{
					{Traffic: "50%"}, {Traffic: "100%", Soak: hour, Approval: v1alpha1.ApprovalAfterSoak},
				}},
			},
		},
	}
	for i := range migratedRings {
		name, old, candidate := fmt.Sprintf("edge-%d", i), digestOf(i), digestOf(i+100)
		c.rings = append(c.rings, &v1alpha1.HashRing{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: name, Generation: 1, ResourceVersion: "1"},
			Spec:       v1alpha1.HashRingSpec{Consumers: &v1alpha1.Consumers{}},
			Status:     v1alpha1.HashRingStatus{ObservedGeneration: 1, Candidate: &v1alpha1.CandidateRing{Digest: candidate}},
		})
		c.files[name] = routing.File{
			APIVersion: routing.APIVersion, Ring: "cdn/" + name, UID: name, Generation: 1, Stable: routing.NewReference(routing.SlotA, old, "V1", 1),
		}
	}
	return c
}

func datacenterName(i int) string { return fmt.Sprintf("dc%03d", i) }

func digestOf(i int) string { return "sha256:" + strings.Repeat("0", 56) + fmt.Sprintf("%08x", i) }

// published is what a ring's own controller has made of what it was told.
func (c *migrationCluster) published(_ context.Context, r *v1alpha1.HashRing) (plan.PublishedState, error) {
	return plan.PublishedState{File: c.files[r.Name], Complete: true, Emptied: c.files[r.Name].Candidate == nil}, nil
}

// consumers have what is published.
func (c *migrationCluster) consumers(ring types.NamespacedName) *plan.Consumers {
	known := &plan.Consumers{}
	asked := plan.AskedBy(c.files[ring.Name])
	for i := range migratedDatacenters * readersEach {
		known.List = append(known.List, plan.Consumer{
			Pod: fmt.Sprintf("reader-%d", i), Said: &plan.Answer{Datacenter: datacenterName(i / readersEach), Ready: true, Asked: asked},
		})
	}
	return known
}

// Get returns a copy, as a cache does.
func (c *migrationCluster) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch o := object.(type) {
	case *v1alpha1.RingMigration:
		c.migration.DeepCopyInto(o)
		return nil
	case *metav1.PartialObjectMetadata:
		o.ObjectMeta = *c.migration.ObjectMeta.DeepCopy()
		return nil
	case *v1alpha1.HashRing:
		for _, r := range c.rings {
			if r.Name == key.Name {
				r.DeepCopyInto(o)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(v1alpha1.Resource("objects"), key.Name)
}

// List returns copies of the rings; there are no actions.
func (c *migrationCluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if rings, ok := list.(*v1alpha1.HashRingList); ok {
		for _, r := range c.rings {
			rings.Items = append(rings.Items, *r.DeepCopy())
		}
	}
	return nil
}

// Status returns the writer of statuses.
func (c *migrationCluster) Status() client.SubResourceWriter { return statusWriter{cluster: c} }

// statusWriter stores what is applied.
type statusWriter struct {
	client.SubResourceWriter
	cluster *migrationCluster
}

// Apply stores a status, and has what a ring is told published.
func (w statusWriter) Apply(_ context.Context, configuration runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	text, err := json.Marshal(configuration)
	if err != nil {
		return err
	}
	c := w.cluster
	c.version++
	c.writes++
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	if named, ok := configuration.(interface{ SetResourceVersion(string) }); ok {
		named.SetResourceVersion(strconv.Itoa(c.version))
	}
	if head.Kind == "RingMigration" {
		applied := &v1alpha1.RingMigration{}
		err := json.Unmarshal(text, applied)
		c.migration.Status, c.migration.ResourceVersion = applied.Status, strconv.Itoa(c.version)
		return err
	}
	applied := &v1alpha1.HashRing{}
	if err := json.Unmarshal(text, applied); err != nil {
		return err
	}
	for _, r := range c.rings {
		if r.Name == head.Name {
			r.Status.Migration, r.ResourceVersion = applied.Status.Migration, strconv.Itoa(c.version)
			c.publish(r)
		}
	}
	return nil
}

// publish does what the lock of a ring asks for.
func (c *migrationCluster) publish(r *v1alpha1.HashRing) {
	file := c.files[r.Name]
	file.Candidate, file.Split = nil, nil
	if lock := r.Status.Migration; lock != nil && lock.Phase == v1alpha1.LockSplit {
		reference := routing.NewReference(routing.SlotB, lock.Candidate, "V3", 1)
		file.Candidate, file.Split = &reference, &routing.Split{Seed: uint32(lock.Seed), BasisPoints: map[string]int{}}
		for _, share := range lock.Split {
			file.Split.BasisPoints[share.Datacenter] = int(share.BasisPoints)
		}
	}
	file.Generation++
	c.files[r.Name] = file
}
