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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/controller"
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
})

var _ = Describe("an operator that is behind in a migration", Serial, func() {
	var r *v1alpha1.HashRing
	var candidate string
	// behind is a reconciler whose cache has the ring as it was.
	behind := func(old *v1alpha1.HashRing, live client.Reader) *controller.HashRingReconciler {
		c := interceptor.NewClient(admin, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				if cached, ok := object.(*v1alpha1.HashRing); ok {
					old.DeepCopyInto(cached)
					return nil
				}
				return c.Get(ctx, key, object, opts...)
			},
		})
		return controller.NewHashRingReconciler(c, live, built, events.NewFakeRecorder(100), clock.RealClock{})
	}
	// publish sets the lock, and has an operator that knows it publish that.
	publish := func(ctx context.Context, lock *v1alpha1.RingLock) *v1alpha1.HashRing {
		GinkgoHelper()
		setLock(ctx, r, lock)
		reconcileUntilQuiet(ctx, r)
		got := &v1alpha1.HashRing{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
		return got
	}
	// lookAgain has it reconcile, and wants it to find that it is behind.
	lookAgain := func(ctx context.Context, reconciler *controller.HashRingReconciler) {
		GinkgoHelper()
		result, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r)})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).NotTo(BeZero(), "it does not know that it is behind")
	}

	BeforeEach(func(ctx SpecContext) {
		r = newChanging(ctx, newNamespace(ctx), "behind")
		candidate = r.Status.Candidate.Digest
		operator.stop() // Its turn is over: the reconciles here are made by hand.
		DeferCleanup(func() { operator = startOperator() })
	})

	DescribeTable("writes nothing of an older lock", func(ctx SpecContext, before, now *v1alpha1.RingLock, want string) {
		for _, lock := range []*v1alpha1.RingLock{before, now} {
			if lock.Phase != v1alpha1.LockLocked {
				lock.Candidate = candidate
			}
		}
		old := publish(ctx, before)
		publish(ctx, now)
		expectRoute(ctx, r, want)
		written := getConfigMap(ctx, r.Namespace, "behind-routing").ResourceVersion
		lookAgain(ctx, behind(old, admin))
		Expect(getConfigMap(ctx, r.Namespace, "behind-routing").ResourceVersion).To(Equal(written))
		Expect(publishedState(ctx, r).Complete).To(BeTrue())
	},
		Entry("of a share that was lowered", newLock(v1alpha1.LockSplit, "", 5000), newLock(v1alpha1.LockSplit, "", 0), "1a 2b 0"),
		Entry("of a candidate that was withdrawn", newLock(v1alpha1.LockSplit, "", 5000), &v1alpha1.RingLock{Name: "move", UID: "u", Phase: v1alpha1.LockLocked}, "1a"),
		Entry("of a lock that was taken since", &v1alpha1.RingLock{Name: "move", UID: "u", Phase: v1alpha1.LockLocked}, newLock(v1alpha1.LockSplit, "", 5000), "1a 2b 5000"),
	)

	It("takes no ring out of its slot for a lock that was wiped for a moment", func(ctx SpecContext) {
		publish(ctx, newLock(v1alpha1.LockSplit, candidate, 10000))
		old := publish(ctx, newLock(v1alpha1.LockPromoted, candidate, 0))
		old.Status.Migration = nil // It was wiped, and put there again.
		lookAgain(ctx, behind(old, admin))
		Expect(publishedState(ctx, r).Emptied).To(BeFalse())
	})

	It("loses against a share that is lowered and published right behind its look at the lock", func(ctx SpecContext) {
		publish(ctx, newLock(v1alpha1.LockSplit, candidate, 50))
		setLock(ctx, r, newLock(v1alpha1.LockSplit, candidate, 5000))
		now := &v1alpha1.HashRing{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), now)).To(Succeed())
		looked := 0
		live := interceptor.NewClient(admin, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, object, opts...)
				if _, ok := object.(*v1alpha1.HashRing); ok {
					looked++
					publish(ctx, newLock(v1alpha1.LockSplit, candidate, 0))
				}
				return err
			},
		})
		lookAgain(ctx, behind(now, live))
		Expect(looked).To(Equal(1))
		Expect(route(routingFile(ctx, r))).To(Equal("1a 2b 0"))
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
