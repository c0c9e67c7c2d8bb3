// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// ofStep are the places of one step.
var ofStep = []string{"Dispatching", "Converging", "Soaking", "AwaitingApproval", "Complete"}

var _ = Describe("an operator that is killed after each of its writes", func() {
	BeforeEach(func() {
		operator.stop()
		DeferCleanup(func() { operator = startOperator() })
	})

	It("goes through the same places and splits, and raises nothing that is not acknowledged", func(ctx SpecContext) {
		plain := startOperator()
		s := newSite(ctx, "ams")
		plain.stop()
		candidate, seen := s.ring.Status.Candidate.Digest, s.record(ctx)
		m := s.newPlan("forward", to("50%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		killed := s.killUntil(ctx, m, v1alpha1.MigrationSucceeded)
		Expect(killed).To(BeNumerically(">=", 20), "every transition and everything that the HashRing is told is a write")
		places := []string{"Queued", "Preparing"}
		for range 3 { // Two steps, and the soak before the old ring is retired.
			places = append(places, ofStep...)
		}
		Expect(seen.places(m.Name)).To(Equal(append(places, "Retiring", "Succeeded")))
		Expect(seen.shares("edge", "ams", candidate)).To(Equal([]int{0, 5000, 10000}))
		seen.checkOrder("edge", m.Name)
		seen.checkAcknowledged(m.Name)
		Expect(s.routingOf(ctx).Stable.Digest).To(Equal(candidate))
	})

	It("rolls back by the same places and splits", func(ctx SpecContext) {
		plain := startOperator()
		s := newSite(ctx, "ams")
		candidate, seen := s.ring.Status.Candidate.Digest, s.record(ctx)
		m := s.newPlan("back", toApproved("50%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		plain.stop()
		editPlan(ctx, m, func(spec *v1alpha1.RingMigrationSpec) { spec.Direction = v1alpha1.DirectionBackward })
		killed := s.killUntil(ctx, m, v1alpha1.MigrationRolledBack)
		Expect(killed).To(BeNumerically(">=", 3), "two transitions and a lower split are writes")
		last := startOperator()
		DeferCleanup(last.stop)
		Eventually(func(g Gomega) { // What is left to do after the end of it.
			r := &v1alpha1.HashRing{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(s.ring), r)).To(Succeed())
			g.Expect(r.Status.Migration).To(BeNil())
			g.Expect(s.routingOf(ctx).Candidate).To(BeNil())
		}).Should(Succeed())
		Expect(seen.places(m.Name)).To(endWith("AwaitingApproval", "RollingBack", "RolledBack"))
		Expect(seen.shares("edge", "ams", candidate)).To(Equal([]int{0, 5000, 0}))
		seen.checkOrder("edge", m.Name)
		seen.checkAcknowledged(m.Name)
	})
})

// killUntil runs operators, each of which is killed after its first write that decides anything, until a migration has come to
// a phase. The API server has done what was asked of it, and the operator does not know. It returns how many there were.
func (s *site) killUntil(ctx context.Context, m *v1alpha1.RingMigration, phase v1alpha1.MigrationPhase) int {
	GinkgoHelper()
	ended := func() bool {
		got := &v1alpha1.RingMigration{}
		return admin.Get(ctx, client.ObjectKeyFromObject(m), got) == nil && got.Status.Phase == phase
	}
	killed, decisive := 0, s.decisive()
	for !ended() {
		over := newLink()
		over.last = decisive
		doomed := startOperatorOver(over, true)
		Eventually(func() bool { return isClosed(over.cut) || ended() }).Should(BeTrue(), "%d were killed", killed)
		if doomed.bury(); isClosed(over.cut) {
			killed++
		}
	}
	return killed
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// decisive returns the property of a request that stores a transition which was not stored before, or that tells a HashRing what it was not
// told before. A soak that counts on, and the holds of an operator that has not asked the consumers yet, are no news.
func (s *site) decisive() func(*http.Request) bool {
	tells, stores := writes(s.namespace, "hashrings/"), writes(s.namespace, "ringmigrations/")
	last, told := v1alpha1.MigrationTransition{}, ""
	return func(r *http.Request) bool {
		if tells(r) {
			before := told
			told = lockIn(r)
			return told != before
		}
		if !stores(r) {
			return false
		}
		var sent struct {
			Status struct{ LastTransition v1alpha1.MigrationTransition }
		}
		if json.Unmarshal([]byte(bodyOf(r)), &sent) != nil || sent.Status.LastTransition == last {
			return false
		}
		last = sent.Status.LastTransition
		return true
	}
}

// lockIn returns what a request tells a HashRing.
func lockIn(r *http.Request) string {
	var sent struct {
		Status struct{ Migration json.RawMessage }
	}
	if json.Unmarshal([]byte(bodyOf(r)), &sent) != nil {
		return ""
	}
	return string(sent.Status.Migration)
}

// endWith matches places that end with others.
func endWith(last ...string) OmegaMatcher {
	return WithTransform(func(places []string) []string { return places[max(len(places)-len(last), 0):] }, Equal(last))
}
