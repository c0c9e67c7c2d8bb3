// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// health says whether a backend can be placed, and whether it can be used. A higher one is better.
type health uint8

const (
	// notServing is an endpoint that is there and takes no requests.
	notServing health = iota
	// draining is one that is going away and still takes requests.
	draining
	// ready is one that takes requests.
	ready
)

// candidate is an endpoint of a source that may become a backend.
type candidate struct {
	health
	address string
	family  v1alpha1.IPFamily
	port    int32
	// owner is the pod, or the address where no pod stands behind the endpoint.
	owner            string
	hostname, pod    string
	zone             string
	slice            string
	sliceAnnotations map[string]string
}

func healthOf(e Endpoint) health {
	switch {
	case e.Ready && !e.Terminating:
		return ready
	case e.Serving:
		return draining
	default:
		return notServing
	}
}

// member is a backend as spec or a source has it.
type member struct {
	backend v1alpha1.Backend
	health
	// declared says that spec.backends has it.
	declared bool
	// unknown says that its labels or its weight are not known: those of the published ring count, or it waits.
	unknown bool
	// otherFamily says that its identity is its address, and that of the preferred family is not known yet: it waits, unless it is on
	// the published ring.
	otherFamily bool
	// badWeight says that only its weight is not known; that of the source is in backend.
	badWeight bool
}

// sourceReader reads one source.
type sourceReader struct {
	index    int
	spec     v1alpha1.BackendSource
	seen     BackendSource
	problems []Problem
}

// field names the source in messages.
func (s *sourceReader) field() string {
	return fmt.Sprintf("spec.backendsFrom[%d] (Service %s)", s.index, s.spec.Service.Name)
}

func (s *sourceReader) problem(reason v1alpha1.ConditionReason, unread bool, format string, args ...any) {
	s.problems = append(s.problems, Problem{Reason: reason, Unread: unread, Message: s.field() + ": " + fmt.Sprintf(format, args...)})
}

// members returns the backends of a source, by name: one for each.
func (s *sourceReader) members(identity v1alpha1.Identity) []member {
	port, ok := s.port()
	if !ok || !s.hasSlicesOf(port) {
		return nil
	}
	named := map[string]candidate{}
	for _, c := range s.perOwner(port) {
		name, ok := s.name(identity, c)
		if !ok {
			continue
		}
		if other, taken := named[name]; taken {
			if other.health == ready && c.health == ready {
				s.problem(v1alpha1.ReasonDuplicateIdentity, false, "%s and %s are both %q: the first one counts", other.owner, c.owner, name)
			}
			if c.health <= other.health {
				continue
			}
		}
		named[name] = c
	}
	var list []member
	for _, name := range slices.Sorted(maps.Keys(named)) {
		list = append(list, s.member(identity, name, named[name]))
	}
	return list
}

// port returns the name by which slices know the port of the Service.
func (s *sourceReader) port() (string, bool) {
	service, wanted := s.seen.Service, s.spec.Service.Port
	switch {
	case service == nil:
		s.problem(v1alpha1.ReasonServiceNotFound, true, "it does not exist")
		return "", false
	case service.ExternalName:
		s.problem(v1alpha1.ReasonServiceNotFound, true, "it is of type ExternalName, which has no endpoints")
		return "", false
	case wanted == nil && len(service.Ports) == 1:
		return service.Ports[0].Name, true
	case wanted == nil:
		s.problem(v1alpha1.ReasonPortNotFound, true, "it has %d ports (%s): service.port must name one", len(service.Ports), portNames(service.Ports))
		return "", false
	}
	for _, p := range service.Ports {
		if wanted.Type == intstr.String && p.Name == wanted.StrVal || wanted.Type == intstr.Int && p.Number == wanted.IntVal {
			return p.Name, true
		}
	}
	s.problem(v1alpha1.ReasonPortNotFound, true, "it has no port %s, but %s", wanted.String(), portNames(service.Ports))
	return "", false
}

// hasSlicesOf says that there is a slice with a port of that name, or no endpoint at all. Slices follow the Service: where it has just
// given its port another name, they have none of that name, which does not mean that the pods are gone.
func (s *sourceReader) hasSlicesOf(port string) bool {
	var others []string
	for _, slice := range s.seen.Slices {
		if slices.ContainsFunc(slice.Ports, func(p Port) bool { return p.Name == port }) {
			return true
		}
		if len(slice.Endpoints) > 0 {
			others = append(others, portNames(slice.Ports))
		}
	}
	if len(others) == 0 {
		return true
	}
	slices.Sort(others)
	s.problem(v1alpha1.ReasonPortNotFound, true, "none of its EndpointSlices has the port %q, but %s: they follow in a moment, or no pod has the target port",
		port, strings.Join(slices.Compact(others), "; "))
	return false
}

func portNames(ports []Port) string {
	if len(ports) == 0 {
		return "none"
	}
	var names []string
	for _, p := range ports {
		names = append(names, strings.TrimSpace(p.Name+" "+strconv.Itoa(int(p.Number))))
	}
	return strings.Join(names, ", ")
}

// perOwner returns the best endpoint of each pod, in the order of the owners. Slices can name a pod twice: while an endpoint
// moves from one to another, in both families, and when a pod comes back under its name.
func (s *sourceReader) perOwner(port string) []candidate {
	best := map[string]candidate{}
	for _, slice := range s.seen.Slices {
		i := slices.IndexFunc(slice.Ports, func(p Port) bool { return p.Name == port })
		if i < 0 {
			continue // Pods without that port are in slices without it.
		}
		for _, e := range slice.Endpoints {
			c := candidate{
				health: healthOf(e), address: e.Address, family: slice.Family, port: slice.Ports[i].Number, owner: "pod " + e.Pod,
				hostname: e.Hostname, pod: e.Pod, zone: e.Zone, slice: slice.Name, sliceAnnotations: slice.Annotations,
			}
			if e.Pod == "" {
				c.owner = "address " + e.Address
			}
			if other, ok := best[c.owner]; !ok || s.better(c, other) {
				best[c.owner] = c
			}
		}
	}
	var list []candidate
	for _, owner := range slices.Sorted(maps.Keys(best)) {
		list = append(list, best[owner])
	}
	return list
}

func (s *sourceReader) preferred() v1alpha1.IPFamily {
	return cmp.Or(s.spec.PreferredIPFamily, v1alpha1.IPv4)
}

// otherFamily says that a pod is known in the family that is not preferred only, and will be in the other one: slices of one family are
// written before those of the other.
func (s *sourceReader) otherFamily(c candidate) bool {
	return c.pod != "" && c.family != s.preferred() && slices.Contains(s.seen.Service.Families, s.preferred()) &&
		slices.Contains(s.seen.Service.Families, c.family)
}

// better says that a is to be used instead of b. It is a total order of what decides a backend, so that neither the order of
// slices nor how endpoints are spread over them makes a difference.
func (s *sourceReader) better(a, b candidate) bool {
	preferred := func(c candidate) int {
		if c.family == s.preferred() {
			return 0
		}
		return 1
	}
	// The family comes first: slices of the other one may know of a change a moment earlier, and a backend that went over to its
	// other address for that moment would move all of its keys, there and back.
	return cmp.Or(
		cmp.Compare(preferred(a), preferred(b)), cmp.Compare(b.health, a.health), cmp.Compare(a.address, b.address),
		cmp.Compare(a.port, b.port), cmp.Compare(a.slice, b.slice),
	) < 0
}

// kind returns what the name of a backend is taken from.
func (s *sourceReader) kind(identity v1alpha1.Identity) v1alpha1.SourceIdentity {
	switch {
	case s.spec.Identity != "":
		return s.spec.Identity
	case identity == v1alpha1.IdentityName:
		return v1alpha1.SourceHostname
	}
	return v1alpha1.SourceAddress
}

// name returns the name of a backend; false where the endpoint does not give one.
func (s *sourceReader) name(identity v1alpha1.Identity, c candidate) (string, bool) {
	kind := s.kind(identity)
	name := map[v1alpha1.SourceIdentity]string{
		v1alpha1.SourceHostname: c.hostname, v1alpha1.SourcePodName: c.pod,
		v1alpha1.SourceAddress: dialAddress(v1alpha1.Backend{Address: c.address, Port: &c.port}),
	}[kind]
	if name == "" {
		s.problem(v1alpha1.ReasonMissingIdentity, false, "the endpoint %s (%s) has no %s, from which its name is taken; identity %s would use another",
			c.address, c.owner, map[v1alpha1.SourceIdentity]string{v1alpha1.SourceHostname: "hostname", v1alpha1.SourcePodName: "pod"}[kind],
			map[v1alpha1.SourceIdentity]string{v1alpha1.SourceHostname: "PodName or Address", v1alpha1.SourcePodName: "Address"}[kind])
	}
	return name, name != ""
}

func (s *sourceReader) member(identity v1alpha1.Identity, name string, c candidate) member {
	m := member{health: c.health, backend: v1alpha1.Backend{
		Name: name, Address: c.address, Port: &c.port, Zone: zoneName(c.zone), Labels: maps.Clone(s.spec.Labels),
	}}
	if ip, err := netip.ParseAddr(c.address); err == nil && ip.Is6() && identity == v1alpha1.IdentityNGINX {
		m.backend.Address = "[" + ip.String() + "]"
	}
	m.otherFamily = s.otherFamily(c) && (identity != v1alpha1.IdentityName || s.kind(identity) == v1alpha1.SourceAddress)
	pod, seen := s.seen.Pods[c.pod]
	m.unknown = ReadsPods(s.spec) && c.pod != "" && !seen // Its labels follow in a moment, or it is going away.
	if m.unknown && m.health == ready {
		s.problem(v1alpha1.ReasonPodNotFound, false, "the labels and annotations of pod %s are not known: it waits, or keeps features and weight where it is on the ring", c.pod)
	}
	for _, key := range s.spec.LabelsFromPod {
		if value, ok := pod.Labels[key]; ok {
			if m.backend.Labels == nil {
				m.backend.Labels = map[string]string{}
			}
			m.backend.Labels[key] = value
		}
	}
	m.setWeight(s, c, pod)
	return m
}

// setWeight takes the weight from the pod, the slice or the source, the first that has one.
func (m *member) setWeight(s *sourceReader, c candidate, pod Pod) {
	value := int32(1)
	if s.spec.Weight != nil {
		value = *s.spec.Weight
	}
	m.backend.Weight = &value
	if s.spec.WeightAnnotation == "" {
		return
	}
	text, where := pod.Annotations[s.spec.WeightAnnotation], c.owner
	if _, ok := pod.Annotations[s.spec.WeightAnnotation]; !ok {
		if text, ok = c.sliceAnnotations[s.spec.WeightAnnotation]; !ok {
			return
		}
		where = "EndpointSlice " + c.slice
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > ring.MaxWeight {
		m.badWeight = true
		s.problem(v1alpha1.ReasonInvalidWeight, false, "annotation %s of %s is %q, not a number from 0 to %d: the backend keeps the weight that it has, or else takes that of the source, %d",
			s.spec.WeightAnnotation, where, truncateText(text, 64), ring.MaxWeight, value)
		return
	}
	value = int32(n)
}

// zoneName returns a zone as a ring takes it, "" for one that it does not.
func zoneName(zone string) string {
	if len(zone) > ring.MaxNameBytes || strings.ContainsFunc(zone, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return zone
}

func truncateText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "…"
}
