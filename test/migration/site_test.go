// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/internal/apisource"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// site is a HashRing, agents that read it in datacenters, and a migration.
type site struct {
	namespace string
	port      int32
	ring      *v1alpha1.HashRing
	// agents are those of ring, by datacenter.
	agents map[string]*runningAgent
	pods   int
}

// runningAgent is an agent of a datacenter in this process, at an address of loopback.
type runningAgent struct {
	ip, dir          string
	ring, datacenter string
	cancel           context.CancelFunc
	done             chan error
}

// newSite publishes a ring under V1, which agents in the datacenters have, and then asks for V2, which is its candidate.
func newSite(ctx context.Context, datacenters ...string) *site {
	GinkgoHelper()
	s := &site{namespace: newNamespace(ctx), port: freePort(), agents: map[string]*runningAgent{}}
	DeferCleanup(s.cleanUp)
	s.ring = s.newRing("edge")
	Expect(admin.Create(ctx, s.ring)).To(Succeed())
	for _, datacenter := range datacenters {
		s.agents[datacenter] = s.startAgent(ctx, s.ring, datacenter)
	}
	s.propose(ctx, s.ring)
	return s
}

// cleanUp takes away what an operator would go on with.
func (s *site) cleanUp(ctx context.Context) {
	GinkgoHelper()
	for _, kind := range []client.Object{&v1alpha1.RingMigration{}, &v1alpha1.HashRing{}} {
		Expect(admin.DeleteAllOf(ctx, kind, client.InNamespace(s.namespace))).To(Succeed())
	}
	list := &v1alpha1.RingMigrationList{}
	Expect(admin.List(ctx, list, client.InNamespace(s.namespace))).To(Succeed())
	for i := range list.Items {
		forget := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(client.IgnoreNotFound(admin.Patch(ctx, &list.Items[i], forget))).To(Succeed())
	}
}

func (s *site) newRing(name string) *v1alpha1.HashRing {
	r := &v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{"fleet": "edge"}},
		Spec: v1alpha1.HashRingSpec{
			Algorithm:   v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV1, PointsPerWeight: 160},
			Publication: v1alpha1.Publication{MinInterval: &metav1.Duration{}},
			Consumers:   &v1alpha1.Consumers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": name}}, Port: s.port},
		},
	}
	for i := range 10 {
		r.Spec.Backends = append(r.Spec.Backends, v1alpha1.Backend{
			Name: fmt.Sprintf("c%02d", i), Address: fmt.Sprintf("10.1.0.%d", i+1), Port: ptr.To(int32(8080)),
		})
	}
	return r
}

// propose asks for another algorithm, and waits for the candidate.
func (s *site) propose(ctx context.Context, r *v1alpha1.HashRing) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), r)).To(Succeed())
		g.Expect(r.Status.Active).NotTo(BeNil())
	}).Should(Succeed())
	s.edit(ctx, r, func(r *v1alpha1.HashRing) {
		r.Spec.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV2, PointsPerWeight: 40}
	})
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), r)).To(Succeed())
		g.Expect(r.Status.Candidate).NotTo(BeNil())
	}).Should(Succeed())
}

// edit changes an object as a person does.
func (s *site) edit(ctx context.Context, r *v1alpha1.HashRing, change func(*v1alpha1.HashRing)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		change(r)
		return admin.Update(ctx, r)
	}).Should(Succeed())
}

// startAgent runs an agent with the pod that the operator finds it by.
func (s *site) startAgent(ctx context.Context, r *v1alpha1.HashRing, datacenter string) *runningAgent {
	GinkgoHelper()
	s.pods++
	a := &runningAgent{
		ip: fmt.Sprintf("127.0.3.%d", s.pods), dir: filepath.Join(GinkgoT().TempDir(), "ring"), ring: r.Name, datacenter: datacenter,
	}
	s.runAgent(a)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "reader-" + r.Name + "-" + datacenter, Labels: map[string]string{"ring": r.Name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "reader", Image: "reader"}}},
	}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, a.ip, []corev1.PodIP{{IP: a.ip}}
	Expect(admin.Status().Update(ctx, pod)).To(Succeed())
	return a
}

// runAgent starts an agent, or starts one again that was stopped.
func (s *site) runAgent(a *runningAgent) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel, a.done = cancel, make(chan error, 1)
	config := agent.Config{
		Dir: a.dir, Source: agent.SourceAPI, API: apisource.Config{HashRing: s.namespace + "/" + a.ring, Kubeconfig: kubeconfig},
		Listen: "127.0.0.1:0", StatusListen: fmt.Sprintf("%s:%d", a.ip, s.port), Datacenter: a.datacenter,
	}
	done := a.done
	go func() {
		defer GinkgoRecover()
		err := agent.Run(ctx, config)
		done <- err
		Expect(err).NotTo(HaveOccurred(), "the agent in %s", a.datacenter)
	}()
	DeferCleanup(a.stop)
}

// stop ends an agent. It may be called twice.
func (a *runningAgent) stop() {
	GinkgoHelper()
	a.cancel()
	Eventually(a.done).Should(Receive(BeNil()))
	a.done <- nil
}

// allowDeletion lets a migration be deleted that is under way.
var allowDeletion = map[string]string{v1alpha1.AnnotationAllowActiveDeletion: "true"}

// newMigration returns a migration of the ring: datacenter lab, then all others.
func (s *site) newMigration() *v1alpha1.RingMigration {
	short := &metav1.Duration{Duration: time.Second}
	return &v1alpha1.RingMigration{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "v1-to-v2", Annotations: allowDeletion},
		Spec: v1alpha1.RingMigrationSpec{
			RingRef: &v1alpha1.RingReference{Name: s.ring.Name},
			Stages: []v1alpha1.MigrationStage{
				{Name: "lab", Datacenters: v1alpha1.StageDatacenters{Names: []string{"lab"}}, Steps: []v1alpha1.MigrationStep{
					{Traffic: "5%", Soak: short}, {Traffic: "100%", Soak: short},
				}},
				{Name: "world", Datacenters: v1alpha1.StageDatacenters{Remainder: true}, Steps: []v1alpha1.MigrationStep{
					{Traffic: "50%", Soak: short}, {Traffic: "100%", Soak: short},
				}},
			},
			Retirement: v1alpha1.RetirementPolicy{Soak: short},
		},
	}
}

// soak is as short as two looks.
var soak = &metav1.Duration{Duration: 300 * time.Millisecond}

// newPlan returns a migration of the ring in all datacenters at once.
func (s *site) newPlan(name string, steps ...v1alpha1.MigrationStep) *v1alpha1.RingMigration {
	m := s.newMigration()
	m.Name = name
	m.Spec.Stages = []v1alpha1.MigrationStage{{Name: "all", Datacenters: v1alpha1.StageDatacenters{Remainder: true}, Steps: steps}}
	m.Spec.Retirement.Soak = soak
	return m
}

// to is a step without approval, toApproved one that waits for it.
func to(traffic string) v1alpha1.MigrationStep {
	return v1alpha1.MigrationStep{Traffic: traffic, Soak: soak}
}

func toApproved(traffic string) v1alpha1.MigrationStep {
	return v1alpha1.MigrationStep{Traffic: traffic, Soak: soak, Approval: v1alpha1.ApprovalAfterSoak}
}

// holds waits until a migration has a hold of a type.
func holds(ctx context.Context, m *v1alpha1.RingMigration, hold migration.HoldType) v1alpha1.MigrationHold {
	GinkgoHelper()
	var found v1alpha1.MigrationHold
	Eventually(func(g Gomega) {
		got := &v1alpha1.RingMigration{}
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), got)).To(Succeed())
		i := slices.IndexFunc(got.Status.Holds, func(h v1alpha1.MigrationHold) bool { return h.Type == v1alpha1.HoldType(hold) })
		g.Expect(i).To(BeNumerically(">=", 0), "%s %s has %+v", got.Status.Phase, got.Status.StepPhase, got.Status.Holds)
		found = got.Status.Holds[i]
	}).Should(Succeed())
	return found
}

// editPlan changes the spec of a migration as a person does.
func editPlan(ctx context.Context, m *v1alpha1.RingMigration, change func(*v1alpha1.RingMigrationSpec)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		change(&m.Spec)
		return admin.Update(ctx, m)
	}).Should(Succeed())
}

// reaches waits until a migration has come to a phase and returns it.
func reaches(ctx context.Context, m *v1alpha1.RingMigration, phase v1alpha1.MigrationPhase) *v1alpha1.RingMigration {
	GinkgoHelper()
	got := &v1alpha1.RingMigration{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), got)).To(Succeed())
		g.Expect(got.Status.Phase).To(Equal(phase), "%+v", got.Status.Summary)
	}).WithTimeout(90 * time.Second).Should(Succeed())
	return got
}

// routingOf returns the routing file that is published.
func (s *site) routingOf(ctx context.Context) routing.File {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: plan.RoutingName(s.ring.Name)}, cm)).To(Succeed())
	file, err := routing.Parse([]byte(cm.Data[routing.FileName]))
	Expect(err).NotTo(HaveOccurred())
	return file
}

func condition(m *v1alpha1.RingMigration, kind v1alpha1.ConditionType) metav1.Condition {
	GinkgoHelper()
	c := meta.FindStatusCondition(m.Status.Conditions, string(kind))
	Expect(c).NotTo(BeNil(), "condition %s", kind)
	return *c
}
