// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// MaxBackends is how many backends a HashRing can have, those of its sources included: as many as spec.backends takes.
const MaxBackends = 4096

// roster is every backend that spec and its sources have now, each identity once.
type roster struct {
	// members are those of spec.backends in its order, then those of the sources by their identities.
	members  []member
	problems []Problem
	// index finds a member by its identity.
	index map[string]int
	// spelled are the identities that sources would give those of spec.backends whose IPv6 address is spelled in another way: with
	// identity NGINX its text counts.
	spelled map[string]bool
}

// takeRoster puts the backends of spec and of what was seen of its sources together. What it returns does not depend on the
// order of sources, slices or endpoints.
func takeRoster(spec v1alpha1.HashRingSpec, sources []BackendSource) roster {
	r := roster{index: map[string]int{}, spelled: map[string]bool{}}
	for _, b := range spec.Backends {
		r.index[identity(spec.Identity, b)] = len(r.members)
		r.members = append(r.members, member{backend: b, health: ready, declared: true})
		if canonical := canonicalNGINX(b); spec.Identity == v1alpha1.IdentityNGINX && canonical != identity(spec.Identity, b) {
			r.spelled[canonical] = true
		}
	}
	for _, reader := range readers(spec, sources) {
		for _, m := range reader.members(spec.Identity) {
			r.add(spec.Identity, reader, m)
		}
		r.problems = append(r.problems, reader.problems...)
	}
	found := r.members[len(spec.Backends):]
	slices.SortFunc(found, func(a, b member) int {
		return cmp.Compare(identity(spec.Identity, a.backend), identity(spec.Identity, b.backend))
	})
	for i, m := range found {
		r.index[identity(spec.Identity, m.backend)] = len(spec.Backends) + i
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(unreadFirst(a), unreadFirst(b)), strings.Compare(a.Message, b.Message))
	})
	return r
}

func unreadFirst(p Problem) int {
	if p.Unread {
		return 0
	}
	return 1
}

// readers returns a reader for each source, in an order that does not depend on that in spec.
func readers(spec v1alpha1.HashRingSpec, sources []BackendSource) []*sourceReader {
	var list []*sourceReader
	for i, s := range spec.BackendsFrom {
		reader := &sourceReader{index: i, spec: s}
		if i < len(sources) {
			reader.seen = sources[i]
		}
		list = append(list, reader)
	}
	port := func(r *sourceReader) string {
		if r.spec.Service.Port == nil {
			return ""
		}
		return r.spec.Service.Port.String()
	}
	rest := func(r *sourceReader) string { // Two sources can name the same port, with other weights.
		text, err := json.Marshal(r.spec)
		if err != nil {
			panic(err) // It came from JSON.
		}
		return string(text)
	}
	slices.SortStableFunc(list, func(a, b *sourceReader) int {
		return cmp.Or(
			strings.Compare(a.spec.Service.Name, b.spec.Service.Name), strings.Compare(port(a), port(b)), strings.Compare(rest(a), rest(b)),
		)
	})
	return list
}

// canonicalNGINX returns the identity of a backend as sources spell it: an IPv6 address in its canonical form.
func canonicalNGINX(b v1alpha1.Backend) string {
	if ip, err := netip.ParseAddr(strings.Trim(b.Address, "[]")); err == nil && ip.Is6() {
		b.Address = "[" + ip.String() + "]"
	}
	return identity(v1alpha1.IdentityNGINX, b)
}

// add takes a member of a source in. Where its identity is there already, the first one counts, and it adds its labels.
func (r *roster) add(kind v1alpha1.Identity, source *sourceReader, m member) {
	id := identity(kind, m.backend)
	if r.spelled[id] {
		return // spec has it.
	}
	at, taken := r.index[id]
	if !taken {
		r.index[id] = len(r.members)
		r.members = append(r.members, m)
		return
	}
	first := &r.members[at]
	if dialAddress(first.backend) != dialAddress(m.backend) {
		source.problem(v1alpha1.ReasonDuplicateIdentity, false, "%q at %s is at %s already: the first one counts",
			id, dialAddress(m.backend), dialAddress(first.backend))
		return
	}
	if first.declared {
		return
	}
	first.health = max(first.health, m.health)
	merged := maps.Clone(m.backend.Labels)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, first.backend.Labels)
	first.backend.Labels = merged
}

// find returns the member of an identity, nil where there is none.
func (r *roster) find(id string) *member {
	if i, ok := r.index[id]; ok {
		return &r.members[i]
	}
	return nil
}

// unread says that a source was not read, so that a backend that is missing may be there all the same.
func (r *roster) unread() bool { return len(r.problems) > 0 && r.problems[0].Unread }
