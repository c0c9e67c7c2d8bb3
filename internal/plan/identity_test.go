// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// TestIdentityChanged: a HashRing that is deleted and made again with another identity begins with a first ring, whose revision
// counts on.
func TestIdentityChanged(t *testing.T) {
	declared := func(identity v1alpha1.Identity) v1alpha1.HashRingSpec {
		s := spec(4)
		s.Identity, s.Membership, s.ChangePolicy = identity, v1alpha1.Membership{MaxMovement: "0%"}, v1alpha1.ChangeMigrate
		return s
	}
	byName, byAddress := []string{"c0", "c1", "c2", "c3"}, []string{"10.0.0.0:8080", "10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"}
	pod := []string{"10.244.0.1:8080", "10.244.0.2:8080", "10.244.0.3:8080", "10.244.0.4:8080"}
	for name, test := range map[string]struct {
		from, to v1alpha1.HashRingSpec
		want     []string
	}{
		"to Name":              {declared(v1alpha1.IdentityAddress), declared(v1alpha1.IdentityName), byName},
		"to Address":           {declared(v1alpha1.IdentityName), declared(v1alpha1.IdentityAddress), byAddress},
		"to NGINX":             {declared(v1alpha1.IdentityAddress), declared(v1alpha1.IdentityNGINX), byAddress},
		"to Address of a pod":  {named(), addressed(), pod},
		"to Address and delay": {named(), delayed(addressed()), pod},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, test.from)
			c.see(pods(4))
			c.step()
			c.ring.Status, c.ring.UID, c.ring.Spec = v1alpha1.HashRingStatus{}, "uid-2", test.to
			d := c.after(minute)
			c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
			c.wantIDs(test.want...)
			c.wantNumbers(2, 2)
			if d.Moved != nil || len(c.file().Down) > 0 || len(c.ring.Status.Members) > 0 {
				t.Errorf("moved %v, down %v, %d clocks", d.Moved, c.file().Down, len(c.ring.Status.Members))
			}
			c.edit(func(s *v1alpha1.HashRingSpec) { s.PinnedRevision = ptr.To(int64(1)) })
			c.after(minute)
			c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRevisionNotFound,
				"spec.pinnedRevision 1 was published with another identity than spec.identity "+string(test.to.Identity))
			c.wantNumbers(2, 2)
		})
	}
}

func delayed(s v1alpha1.HashRingSpec) v1alpha1.HashRingSpec {
	s.Membership.JoinDelay = &metav1.Duration{Duration: minute}
	return s
}
