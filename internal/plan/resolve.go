// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// Refusal says why a spec cannot be published. The last good ring stays.
type Refusal struct {
	// Reason is the reason of the conditions.
	Reason v1alpha1.ConditionReason
	// Message names the field, the value and the limit.
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

func refusef(reason v1alpha1.ConditionReason, format string, args ...any) error {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Desired is the ring that a spec asks for.
type Desired struct {
	Ring *Ring
	// Addresses gives the dial address of each backend whose identity is not its address.
	Addresses map[string]string
	// Drained is how many backends have weight 0.
	Drained int
	// Warnings are oddities of the spec; those of the ring are its own.
	Warnings []v1alpha1.Warning
	// Chunks is how many ConfigMaps there are for each slot, needed or not.
	Chunks int
}

// Build returns the first ring that spec asks for. The error is a [Refusal]. The fields that the schema gives defaults to
// must have them.
func Build(spec v1alpha1.HashRingSpec) (*Desired, error) { return BuildFrom(spec, nil) }

// BuildFrom returns the ring that spec asks for where previous is published, which can be nil. What that has trimmed stays
// trimmed under V3, where it helps; other versions do not depend on it.
func BuildFrom(spec v1alpha1.HashRingSpec, previous *ring.Ring) (*Desired, error) {
	return buildWith(BuildRing, spec, previous)
}

func buildWith(build RingBuilder, spec v1alpha1.HashRingSpec, previous *ring.Ring) (*Desired, error) {
	config, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	config.Previous = previous
	if drained(spec) == len(spec.Backends) {
		return nil, refusef(v1alpha1.ReasonNoBackends, "spec.backends: none of %d backends has a weight above 0", len(spec.Backends))
	}
	request := Request{Config: config, Encoding: cmp.Or(spec.Publication.Encoding, v1alpha1.EncodingAuto), Chunks: chunks(spec)}
	built, err := build(request)
	if err != nil {
		return nil, explain(spec, err)
	}
	return &Desired{
		Ring: built, Addresses: addresses(spec), Drained: drained(spec), Warnings: withoutEffect(spec), Chunks: request.Chunks,
	}, nil
}

// chunks returns how many ConfigMaps a slot may take. An object that was admitted under an older schema does not say.
func chunks(spec v1alpha1.HashRingSpec) int { return max(int(spec.Publication.Chunks), 1) }

// resolve translates spec into the terms of the engine. Backends keep their positions.
func resolve(spec v1alpha1.HashRingSpec) (ring.Config, error) {
	algorithm, err := algorithm(spec.Algorithm)
	if err != nil {
		return ring.Config{}, err
	}
	views, err := views(spec)
	if err != nil {
		return ring.Config{}, err
	}
	config := ring.Config{
		Algorithm: algorithm,
		Views:     views,
		Identity: map[v1alpha1.Identity]ring.Identity{
			v1alpha1.IdentityAddress: ring.IdentityAddress, v1alpha1.IdentityNGINX: ring.IdentityNGINX, v1alpha1.IdentityName: ring.IdentityName,
		}[spec.Identity],
		MaxPoints: maxPoints(algorithm.Version),
	}
	selectors, err := selectors(spec.Features)
	if err != nil {
		return ring.Config{}, err
	}
	for _, f := range spec.Features {
		config.Features = append(config.Features, f.Name)
	}
	for _, b := range spec.Backends {
		backend := ring.Backend{ID: identity(spec.Identity, b), Weight: uint32(weight(b)), Zone: b.Zone}
		for k, selector := range selectors {
			if selector.Matches(labels.Set(b.Labels)) {
				backend.Features = append(backend.Features, spec.Features[k].Name)
			}
		}
		config.Backends = append(config.Backends, backend)
	}
	return config, checkNames(spec.Backends)
}

// checkNames repeats a rule of the schema for objects that were admitted under an older one.
func checkNames(backends []v1alpha1.Backend) error {
	seen := make(map[string]int, len(backends))
	for i, b := range backends {
		if first, ok := seen[b.Name]; ok {
			return refusef(v1alpha1.ReasonDuplicateIdentity, "spec.backends[%d] and spec.backends[%d] have the same name %q", first, i, b.Name)
		}
		seen[b.Name] = i
	}
	return nil
}

func selectors(features []v1alpha1.Feature) ([]labels.Selector, error) {
	list := make([]labels.Selector, len(features))
	for i, f := range features {
		selector, err := metav1.LabelSelectorAsSelector(&f.Selector)
		if err != nil {
			return nil, refusef(v1alpha1.ReasonInvalidSpec, "spec.features[%d].selector of feature %q: %v", i, f.Name, err)
		}
		list[i] = selector
	}
	return list, nil
}

// identity returns what is hashed, as text.
func identity(kind v1alpha1.Identity, b v1alpha1.Backend) string {
	if kind == v1alpha1.IdentityName {
		return b.Name
	}
	if kind == v1alpha1.IdentityNGINX {
		if b.Port == nil {
			return b.Address
		}
		return b.Address + ":" + strconv.Itoa(int(*b.Port))
	}
	return dialAddress(b)
}

// dialAddress returns "host:port", an IPv6 address in brackets and in its canonical form.
func dialAddress(b v1alpha1.Backend) string {
	host := b.Address
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.String()
	}
	if b.Port == nil {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(*b.Port)))
}

func weight(b v1alpha1.Backend) int32 {
	if b.Weight == nil {
		return 1
	}
	return *b.Weight
}

func addresses(spec v1alpha1.HashRingSpec) map[string]string {
	if spec.Identity != v1alpha1.IdentityName {
		return nil
	}
	m := make(map[string]string, len(spec.Backends))
	for _, b := range spec.Backends {
		m[b.Name] = dialAddress(b)
	}
	return m
}

func drained(spec v1alpha1.HashRingSpec) int {
	n := 0
	for _, b := range spec.Backends {
		if weight(b) == 0 {
			n++
		}
	}
	return n
}

// explain turns an error of the engine into one that speaks of the spec.
func explain(spec v1alpha1.HashRingSpec, err error) error {
	var refusal *Refusal
	var duplicate *ring.DuplicateError
	var invalid *ring.ConfigError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &duplicate):
		return refusef(v1alpha1.ReasonDuplicateIdentity, "spec.backends[%d] %q and spec.backends[%d] %q have the same identity %q",
			duplicate.First, spec.Backends[duplicate.First].Name, duplicate.Second, spec.Backends[duplicate.Second].Name, duplicate.ID)
	case errors.As(err, &invalid):
		field := strings.Replace(strings.TrimSuffix(invalid.Field, ".id"), "views[", "viewList[", 1)
		return refusef(v1alpha1.ReasonInvalidSpec, "spec.%s: %q: %s", field, invalid.Value, invalid.Reason)
	default:
		return refusef(v1alpha1.ReasonInvalidSpec, "spec: %v", err)
	}
}
