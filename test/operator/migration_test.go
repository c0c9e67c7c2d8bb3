// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/internal/publish"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// migrationManager is the field manager of the migration controller, whose part these tests play.
const migrationManager = "ringwright-migration"

// newChanging makes a ring that spec asks another algorithm of, and returns it with its candidate.
func newChanging(ctx context.Context, namespace, name string) *v1alpha1.HashRing {
	GinkgoHelper()
	r := newRing(namespace, name, 12)
	r.Spec.ChangePolicy = v1alpha1.ChangeMigrate
	r.Spec.Algorithm.PointsPerWeight = 40
	Expect(admin.Create(ctx, r)).To(Succeed())
	settled(ctx, r, v1alpha1.ReasonRingPublished)
	edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Algorithm.PointsPerWeight = 160 })
	return settled(ctx, r, v1alpha1.ReasonCandidateWaiting)
}

// setLock does what the migration controller does. A nil one is no lock.
func setLock(ctx context.Context, r *v1alpha1.HashRing, lock *v1alpha1.RingLock) {
	GinkgoHelper()
	status := map[string]any{}
	if lock != nil {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(lock)
		Expect(err).NotTo(HaveOccurred())
		status["migration"] = fields
	}
	Eventually(func() error {
		live := &v1alpha1.HashRing{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(r), live); err != nil {
			return err
		}
		object := &unstructured.Unstructured{Object: map[string]any{"status": status}}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HashRing"))
		object.SetNamespace(r.Namespace)
		object.SetName(r.Name)
		object.SetResourceVersion(live.ResourceVersion)
		return admin.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(migrationManager))
	}).Should(Succeed())
}

// newLock returns a lock in a phase, with the share of one datacenter.
func newLock(phase v1alpha1.LockPhase, candidate string, points int32) *v1alpha1.RingLock {
	return &v1alpha1.RingLock{
		Name: "move", UID: "uid-m", Phase: phase, Candidate: candidate, Seed: 7,
		Split: []v1alpha1.DatacenterShare{{Datacenter: "lab01", BasisPoints: points}},
	}
}

// route says in short what a routing file says: the revision and slot of each ring, and the share of lab01.
func route(file routing.File) string {
	text := fmt.Sprintf("%d%s", file.Stable.Revision, file.Stable.Slot)
	if file.Candidate != nil {
		text += fmt.Sprintf(" %d%s %d", file.Candidate.Revision, file.Candidate.Slot, file.Split.In("lab01"))
	}
	return text
}

func expectRoute(ctx context.Context, r *v1alpha1.HashRing, want string) {
	GinkgoHelper()
	Eventually(func() string { return route(routingFile(ctx, r)) }).Should(Equal(want))
}

// watchMoments watches the ConfigMaps of r. The function that it returns checks what a pod could have read at each moment: one that
// starts then finds everything that the routing file names, and one that runs sees the routes in this order.
func watchMoments(ctx context.Context, r *v1alpha1.HashRing) func(routes ...string) {
	GinkgoHelper()
	watcher, err := admin.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(r.Namespace))
	Expect(err).NotTo(HaveOccurred())
	seen := make(chan []watch.Event, 1)
	go func() {
		var events []watch.Event
		for event := range watcher.ResultChan() {
			events = append(events, event)
		}
		seen <- events
	}()
	return func(routes ...string) {
		GinkgoHelper()
		watcher.Stop()
		dir, moment := GinkgoT().TempDir(), map[string][]byte{}
		var running *ringclient.Client
		var last []string
		for _, event := range <-seen {
			cm, ok := event.Object.(*corev1.ConfigMap)
			if !ok || !strings.HasPrefix(cm.Name, r.Name+"-") || len(cm.Data)+len(cm.BinaryData) == 0 {
				continue
			}
			maps.Copy(moment, cm.BinaryData)
			for name, text := range cm.Data {
				moment[name] = []byte(text)
			}
			if len(moment) < 3 {
				continue
			}
			Expect(materialize.Write(dir, moment)).To(Succeed())
			starting, err := ringclient.Open(dir, ringclient.Options{Datacenter: "lab01"})
			Expect(err).NotTo(HaveOccurred(), "after %s was written", cm.Name)
			state := starting.State()
			Expect(starting.Close()).To(Succeed())
			if running == nil {
				running, err = ringclient.Open(dir, ringclient.Options{Datacenter: "lab01"})
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(running.Close)
			}
			Eventually(func() int64 { return running.State().Generation() }).Should(Equal(state.Generation()))
			file, err := routing.Parse(moment[routing.FileName])
			Expect(err).NotTo(HaveOccurred())
			if now := route(file); len(last) == 0 || last[len(last)-1] != now {
				last = append(last, now)
			}
		}
		Expect(running.Stats().LoadErrors).To(BeEmpty())
		Expect(last).To(Equal(routes))
	}
}

var _ = Describe("a migration", func() {
	It("publishes both rings, moves keys, promotes and empties, and is readable at every moment", func(ctx SpecContext) {
		r := newChanging(ctx, newNamespace(ctx), "forward")
		moments := watchMoments(ctx, r)
		candidate := r.Status.Candidate
		setLock(ctx, r, &v1alpha1.RingLock{Name: "move", UID: "uid-m", Phase: v1alpha1.LockLocked})
		for _, points := range []int32{0, 50, 10000} {
			setLock(ctx, r, newLock(v1alpha1.LockSplit, candidate.Digest, points))
			expectRoute(ctx, r, fmt.Sprint("1a 2b ", points))
		}
		Eventually(func(g Gomega) {
			got := settled(ctx, r, v1alpha1.ReasonCandidateWaiting)
			g.Expect(got.Status.Candidate).NotTo(BeNil())
			g.Expect(*got.Status.Candidate).To(And(HaveField("Slot", v1alpha1.SlotB), HaveField("Digest", candidate.Digest), HaveField("WeightLost", "0.00%"), HaveField("Revision", int64(2))))
		}).Should(Succeed())
		setLock(ctx, r, newLock(v1alpha1.LockPromoted, candidate.Digest, 10000))
		expectRoute(ctx, r, "2b")
		Expect(publishedState(ctx, r).Emptied).To(BeFalse())
		setLock(ctx, r, newLock(v1alpha1.LockRetired, candidate.Digest, 10000))
		Eventually(func(g Gomega) {
			state := publishedState(ctx, r)
			g.Expect(state.Complete && state.Emptied).To(BeTrue())
		}).Should(Succeed())
		setLock(ctx, r, nil)
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Migration).To(BeNil(), "it is somebody else's too")
		Expect(got.Status.Active).To(And(HaveField("Slot", v1alpha1.SlotB), HaveField("Revision", int64(2)), HaveField("Digest", candidate.Digest)))
		Expect(got.Status.Candidate).To(BeNil())
		Expect(reconcileOnce(ctx, r, nil).writes).To(BeEmpty())
		moments("1a", "1a 2b 0", "1a 2b 50", "1a 2b 10000", "2b")
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(r.Namespace))).To(Succeed())
			reasons := []string{}
			for _, event := range list.Items {
				reasons = append(reasons, event.Reason)
			}
			g.Expect(reasons).To(ContainElements("CandidatePublished", "CandidatePromoted", "SlotEmptied"))
			g.Expect(reasons).NotTo(ContainElement("Restored"))
		}).Should(Succeed())
	})

	It("goes back, and the ring follows spec again", func(ctx SpecContext) {
		r := newChanging(ctx, newNamespace(ctx), "back")
		moments := watchMoments(ctx, r)
		candidate := r.Status.Candidate.Digest
		setLock(ctx, r, newLock(v1alpha1.LockSplit, candidate, 5000))
		expectRoute(ctx, r, "1a 2b 5000")
		setLock(ctx, r, newLock(v1alpha1.LockSplit, candidate, 0))
		expectRoute(ctx, r, "1a 2b 0")
		setLock(ctx, r, &v1alpha1.RingLock{Name: "move", UID: "uid-m", Phase: v1alpha1.LockLocked})
		expectRoute(ctx, r, "1a")
		Eventually(func() bool { return publishedState(ctx, r).Emptied }).Should(BeTrue())
		moments("1a", "1a 2b 5000", "1a 2b 0", "1a")
		setLock(ctx, r, nil)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(13) })
		expectRoute(ctx, r, "3a")
	})

	It("passes over who leaves, in both rings, and lets the rest of spec wait", func(ctx SpecContext) {
		r := newChanging(ctx, newNamespace(ctx), "frozen")
		moments := watchMoments(ctx, r)
		setLock(ctx, r, newLock(v1alpha1.LockSplit, r.Status.Candidate.Digest, 5000))
		expectRoute(ctx, r, "1a 2b 5000")
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(14)[1:] })
		Eventually(func() []string { return routingFile(ctx, r).Down }).Should(Equal([]string{"10.1.0.0:8080"}))
		dir := GinkgoT().TempDir()
		Expect(materialize.Write(dir, files(ctx, r))).To(Succeed())
		reader, err := ringclient.Open(dir, ringclient.Options{Datacenter: "lab01"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(reader.Close)
		roles := map[ringclient.Role]int{}
		for i := range 2000 {
			d, err := reader.Pick(fmt.Appendf(nil, "key-%d", i))
			Expect(err).NotTo(HaveOccurred())
			Expect(d.ID()).NotTo(Equal("10.1.0.0:8080"))
			roles[d.Role()]++
		}
		Expect(roles[ringclient.Candidate]).To(BeNumerically("~", 1000, 200))
		got := settled(ctx, r, v1alpha1.ReasonCandidateWaiting)
		Expect(got.Status.Candidate.WeightLost).To(Equal("8.33%"))
		required := meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionMigrationRequired))
		Expect(required.Reason).To(BeEquivalentTo(v1alpha1.ReasonMigrationInProgress), required.Message)
		Expect(required.Message).To(ContainSubstring("2 backends to join (10.1.0.12:8080, 10.1.0.13:8080)"))
		moments("1a", "1a 2b 5000")
	})

	It("outlives its HashRing, and one that is made again finds both rings as they were", func(ctx SpecContext) {
		r := newChanging(ctx, newNamespace(ctx), "buried")
		setLock(ctx, r, newLock(v1alpha1.LockSplit, r.Status.Candidate.Digest, 5000))
		expectRoute(ctx, r, "1a 2b 5000")
		before, spec := routingFile(ctx, r), r.Spec
		Expect(admin.Delete(ctx, r)).To(Succeed())
		Eventually(func() map[string]string {
			return getConfigMap(ctx, r.Namespace, "buried-routing").Annotations
		}).Should(HaveKey(v1alpha1.AnnotationTombstoneUntil))
		Expect(routingFile(ctx, r)).To(Equal(before))
		Expect(publishedState(ctx, r).Complete).To(BeTrue())

		again := &v1alpha1.HashRing{Spec: spec}
		again.Namespace, again.Name = r.Namespace, r.Name
		Expect(admin.Create(ctx, again)).To(Succeed())
		got := settled(ctx, again, v1alpha1.ReasonCandidateWaiting)
		after := routingFile(ctx, again)
		Expect(after.UID).To(BeEquivalentTo(got.UID))
		Expect(after.Generation).To(Equal(before.Generation + 1))
		before.UID, before.Generation = after.UID, after.Generation
		Expect(after).To(Equal(before))
		Expect(got.Status.Candidate).To(HaveField("Slot", v1alpha1.SlotB))
		setLock(ctx, again, &v1alpha1.RingLock{Name: "move", UID: "uid-m", Phase: v1alpha1.LockLocked})
		expectRoute(ctx, again, "1a")
	})
})

// publishedState is what the migration controller is told.
func publishedState(ctx context.Context, r *v1alpha1.HashRing) publishedRing {
	GinkgoHelper()
	state, err := (&publish.Publisher{Client: admin, Live: admin}).Published(ctx, r)
	Expect(err).NotTo(HaveOccurred())
	return publishedRing{route(state.File), state.Complete, state.Emptied}
}

type publishedRing struct {
	Route             string
	Complete, Emptied bool
}
