// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"fmt"
	"maps"
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// askedKeys is how many keys are looked up.
const askedKeys = 20_000

var _ = Describe("the keys that go to the candidate", func() {
	It("grow with the share, are as many as it says, and are the same after a rollback", func(ctx SpecContext) {
		s := newSite(ctx, "lab", "ams")
		m := s.newPlan("keys", toApproved("5%"), toApproved("50%"), toApproved("90%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		moved := map[int]map[string]bool{}
		last := map[string]bool{}
		for _, share := range []int{500, 5000, 9000} {
			holds(ctx, m, migration.HoldAwaitingApproval)
			moved[share] = s.movedKeys(share)
			for key := range last {
				if !moved[share][key] {
					Fail(fmt.Sprintf("%s goes back at %d basis points", key, share))
				}
			}
			if last = moved[share]; share < 9000 {
				token := tokenOf(ctx, m)
				accepted(ctx, m, v1alpha1.ActionApprove)
				Eventually(func() string { return tokenOf(ctx, m) }).ShouldNot(Equal(token))
			}
		}
		seed := s.routingOf(ctx).Split.Seed
		accepted(ctx, m, v1alpha1.ActionRollback)
		reaches(ctx, m, v1alpha1.MigrationRolledBack)
		Expect(s.movedKeys(0)).To(BeEmpty())
		accepted(ctx, m, v1alpha1.ActionRetry)
		holds(ctx, m, migration.HoldAwaitingApproval)
		Expect(s.routingOf(ctx).Split.Seed).To(Equal(seed))
		Expect(maps.Equal(s.movedKeys(500), moved[500])).To(BeTrue())
	})
})

// movedKeys returns the keys that the readers of all datacenters send to the candidate, which has to be the same ones and as many as a
// share says, within 5 standard deviations.
func (s *site) movedKeys(share int) map[string]bool {
	GinkgoHelper()
	var all map[string]bool
	for datacenter, a := range s.agents {
		keys := a.movedKeys()
		p := float64(share) / routing.MaxBasisPoints
		Expect(float64(len(keys))).To(BeNumerically("~", askedKeys*p, 5*math.Sqrt(askedKeys*p*(1-p))), datacenter)
		if all != nil {
			Expect(maps.Equal(keys, all)).To(BeTrue(), datacenter)
		}
		all = keys
	}
	return all
}

// movedKeys returns the keys that a reader of the agent's directory sends to the candidate.
func (a *runningAgent) movedKeys() map[string]bool {
	GinkgoHelper()
	reader, err := ringclient.Open(a.dir, ringclient.Options{Datacenter: a.datacenter})
	Expect(err).NotTo(HaveOccurred())
	defer reader.Close()
	state, keys := reader.State(), map[string]bool{}
	for i := range askedKeys {
		key := fmt.Sprintf("/object/%d", i)
		decision, err := state.Pick([]byte(key))
		if err != nil {
			Fail(err.Error())
		}
		if decision.Role() == ringclient.Candidate {
			keys[key] = true
		}
	}
	return keys
}
