// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ringwright/ringwright/pkg/ring"
)

// pointsPerMember makes the busiest of a few replicas own about a tenth more policies than the average one.
const pointsPerMember = 160

// Member is a replica that owns policies.
type Member struct {
	// Name is unique among the replicas; it is the name of the pod.
	Name string
	// Address is the host and port of its Replicas service.
	Address string
}

// table says which member owns a policy. The zero value has no member.
type table struct {
	members map[string]Member
	ring    *ring.Ring
}

// newTable returns the table of members with names that differ, in any order.
func newTable(members []Member) (table, error) {
	if len(members) == 0 {
		return table{}, nil
	}
	t := table{members: make(map[string]Member, len(members))}
	config := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: pointsPerMember}, Identity: ring.IdentityName}
	for _, m := range members {
		t.members[m.Name] = m
		config.Backends = append(config.Backends, ring.Backend{ID: m.Name, Weight: 1})
	}
	var err error
	if t.ring, err = ring.Build(config); err != nil {
		return table{}, fmt.Errorf("building the ring of the balancer's replicas: %w", err)
	}
	return t, nil
}

// owner returns the member that owns a policy, false without any member.
func (t table) owner(policy string) (Member, bool) {
	if t.ring == nil {
		return Member{}, false
	}
	i, err := t.ring.Owner(ring.Hash([]byte(policy)))
	if err != nil {
		return Member{}, false
	}
	return t.members[t.ring.ID(i)], true
}

// sorted returns the members in the order of their names.
func (t table) sorted() []Member {
	members := make([]Member, 0, len(t.members))
	for _, m := range t.members {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return members
}
