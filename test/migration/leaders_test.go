// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// The operator that is deposed here never notices: it leads without having been elected, from before to after its successor rolls back.
var _ = Describe("an operator that does not know that another one leads", func() {
	BeforeEach(func() {
		operator.stop()
		DeferCleanup(func() {
			operator.stop()
			operator = startOperator()
		})
	})

	DescribeTable("raises no share that its successor has lowered", func(ctx SpecContext, stops func(s *site) func(*http.Request) bool, only func(*http.Request) bool) {
		over := newLink()
		over.only = only
		deposed := startOperatorOver(over, false)
		DeferCleanup(deposed.bury)
		s := newSite(ctx, "ams")
		candidate, seen := s.ring.Status.Candidate.Digest, s.record(ctx)
		m := s.newPlan("deposed", toApproved("50%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		if stops == nil {
			over.stop()
		} else { // It has decided to raise the share, and comes no further than to one of its writes.
			over.stopAt(stops(s))
			ask(ctx, m, v1alpha1.ActionApprove, tokenOf(ctx, m))
			Eventually(over.stopped).Should(BeClosed())
		}

		operator = startOperator()
		ask(ctx, m, v1alpha1.ActionRollback, "")
		reaches(ctx, m, v1alpha1.MigrationRolledBack)
		Eventually(func(g Gomega) { g.Expect(s.routingOf(ctx).Candidate).To(BeNil()) }).Should(Succeed())
		over.resume()
		Consistently(func(g Gomega) {
			g.Expect(s.routingOf(ctx).Split).To(BeNil())
		}).WithTimeout(3 * time.Second).Should(Succeed())
		reaches(ctx, m, v1alpha1.MigrationRolledBack)
		Expect(seen.shares("edge", "ams", candidate)).To(Equal([]int{0, 5000, 0}))
		last := int64(0)
		for _, f := range seen.files("edge") {
			Expect(f.LeaderEpoch).To(BeNumerically(">=", last), "generation %d", f.Generation)
			last = f.LeaderEpoch
		}
	},
		Entry("that holds, with a cache of before", nil, nil),
		Entry("that holds, and knows the HashRing but not what became of the RingMigration", nil, func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/ringmigrations") && r.URL.Query().Get("watch") == "true"
		}),
		Entry("that is about to store the raised share", func(s *site) func(*http.Request) bool { return s.raises("ringmigrations/") }, nil),
		Entry("that is about to tell the HashRing", func(s *site) func(*http.Request) bool { return s.raises("hashrings/") }, nil),
		Entry("that is about to publish", func(s *site) func(*http.Request) bool {
			return func(r *http.Request) bool {
				return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/namespaces/"+s.namespace+"/configmaps/edge-routing")
			}
		}, nil),
	)
})

// raises returns the property of a request that asks for all keys to go to the candidate.
func (s *site) raises(resource string) func(*http.Request) bool {
	ours := writes(s.namespace, resource)
	return func(r *http.Request) bool {
		return ours(r) && strings.Contains(bodyOf(r), `"basisPoints":10000,"datacenter":"ams"`)
	}
}
