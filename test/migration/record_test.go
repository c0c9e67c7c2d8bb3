// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// record is everything that was written in a namespace: RingMigrations, HashRings and routing files, each version of each.
type record struct {
	mu     sync.Mutex
	events []recorded
}

// recorded is one version of an object. All kinds are kept in one store here, so that versions say what came first.
type recorded struct {
	version uint64
	object  client.Object
}

// record watches a namespace until the spec ends.
func (s *site) record(ctx context.Context) *record {
	GinkgoHelper()
	r := &record{}
	for _, list := range []client.ObjectList{&v1alpha1.RingMigrationList{}, &v1alpha1.HashRingList{}, &corev1.ConfigMapList{}} {
		watcher, err := admin.Watch(context.WithoutCancel(ctx), list, client.InNamespace(s.namespace))
		Expect(err).NotTo(HaveOccurred())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for event := range watcher.ResultChan() {
				r.add(event)
			}
		}()
		DeferCleanup(func() {
			watcher.Stop()
			<-done
		})
	}
	return r
}

func (r *record) add(event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok || event.Type == watch.Deleted {
		return
	}
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, recorded{version, object})
}

// all returns everything in the order in which it was written.
func (r *record) all() []recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(slices.Values(r.events), func(a, b recorded) int { return cmp.Compare(a.version, b.version) })
}

// files returns the routing files of a HashRing.
func (r *record) files(ring string) []routing.File {
	GinkgoHelper()
	var files []routing.File
	for _, e := range r.all() {
		if file := routingIn(e.object, ring); file != nil {
			files = append(files, *file)
		}
	}
	return files
}

// routingIn returns the routing file of a HashRing that an object holds; nil where it holds none.
func routingIn(object client.Object, ring string) *routing.File {
	GinkgoHelper()
	cm, ok := object.(*corev1.ConfigMap)
	if !ok || cm.Name != plan.RoutingName(ring) || cm.Data[routing.FileName] == "" {
		return nil
	}
	file, err := routing.Parse([]byte(cm.Data[routing.FileName]))
	Expect(err).NotTo(HaveOccurred())
	return &file
}

// shares returns what the routing files of a HashRing send to a candidate in a datacenter, one after the other without repetitions.
func (r *record) shares(ring, datacenter, candidate string) []int {
	GinkgoHelper()
	var shares []int
	for _, f := range r.files(ring) {
		share := 0
		switch {
		case f.Stable.Digest == candidate:
			share = routing.MaxBasisPoints
		case f.Split != nil:
			share = f.Split.In(datacenter)
		}
		shares = append(shares, share)
	}
	return slices.Compact(shares)
}

// migrations returns the versions of a RingMigration.
func (r *record) migrations(name string) []*v1alpha1.RingMigration {
	var versions []*v1alpha1.RingMigration
	for _, e := range r.all() {
		if m, ok := e.object.(*v1alpha1.RingMigration); ok && m.Name == name {
			versions = append(versions, m)
		}
	}
	return versions
}

// places returns where a migration has been, each time that it went anywhere.
func (r *record) places(name string) []string {
	var places []string
	last := v1alpha1.MigrationTransition{}
	for _, m := range r.migrations(name) {
		if t := m.Status.LastTransition; t != nil && *t != last {
			places, last = append(places, t.To), *t
		}
	}
	return places
}

// checkOrder checks that whatever a HashRing was told was in the status of its migration before, that whatever was published had been told
// before, and that versions of routing files rise.
func (r *record) checkOrder(ring, name string) {
	GinkgoHelper()
	asked, told := "", ""
	epoch, generation := int64(0), int64(0)
	for _, e := range r.all() {
		switch o := e.object.(type) {
		case *v1alpha1.RingMigration:
			if o.Name == name {
				asked = describe(o.Status.Split)
			}
		case *v1alpha1.HashRing:
			if lock := o.Status.Migration; o.Name == ring && lock != nil && lock.Phase == v1alpha1.LockSplit && describe(lock.Split) != told {
				told = describe(lock.Split)
				Expect(told).To(Equal(asked), "version %d of HashRing %s is told what the RingMigration does not ask for", e.version, ring)
			}
		case *corev1.ConfigMap:
			file := routingIn(o, ring)
			if file == nil {
				continue
			}
			if file.Split != nil {
				Expect(describeFile(*file)).To(Equal(told), "generation %d says what nobody has asked for", file.Generation)
			}
			Expect(file.LeaderEpoch).To(BeNumerically(">=", epoch))
			Expect(file.Generation).To(BeNumerically(">=", generation))
			epoch, generation = file.LeaderEpoch, file.Generation
		}
	}
}

func describe(shares []v1alpha1.DatacenterShare) string {
	var parts []string
	for _, s := range shares {
		if s.BasisPoints > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", s.Datacenter, s.BasisPoints))
		}
	}
	return strings.Join(parts, " ")
}

func describeFile(f routing.File) string {
	var shares []v1alpha1.DatacenterShare
	for datacenter, share := range f.Split.BasisPoints {
		shares = append(shares, v1alpha1.DatacenterShare{Datacenter: datacenter, BasisPoints: int32(share)})
	}
	slices.SortFunc(shares, func(a, b v1alpha1.DatacenterShare) int { return cmp.Compare(a.Datacenter, b.Datacenter) })
	return describe(shares)
}

// checkAcknowledged checks that no share was raised before all consumers had said that they have the split before.
func (r *record) checkAcknowledged(name string) {
	GinkgoHelper()
	var before *v1alpha1.RingMigration
	for _, m := range r.migrations(name) {
		if before != nil && before.Status.Dispatch != nil && raises(before.Status.Split, m.Status.Split) {
			status := before.Status
			Expect(status.Phase).To(Or(Equal(v1alpha1.MigrationPreparing), Equal(v1alpha1.MigrationShifting)))
			if status.Phase == v1alpha1.MigrationShifting { // While it prepares, that all have it can be found in the look that goes on.
				Expect(status.Dispatch.Published).To(BeTrue(), "split %d", status.Dispatch.Number)
				Expect(status.StepPhase).To(Equal(v1alpha1.StepComplete), "split %d", status.Dispatch.Number)
				Expect(status.Dispatch.EffectiveAt).NotTo(BeNil(), "split %d", status.Dispatch.Number)
			}
			for _, d := range m.Status.Datacenters {
				Expect(d.Current).To(Equal(d.Total), "%s when split %d was raised", d.Name, status.Dispatch.Number)
			}
		}
		before = m
	}
}

func raises(have, want []v1alpha1.DatacenterShare) bool {
	before := map[string]int32{}
	for _, s := range have {
		before[s.Datacenter] = s.BasisPoints
	}
	return slices.ContainsFunc(want, func(s v1alpha1.DatacenterShare) bool { return s.BasisPoints > before[s.Datacenter] })
}
