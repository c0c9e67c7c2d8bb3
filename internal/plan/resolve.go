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
	"github.com/ringwright/ringwright/pkg/routing"
)

// Refusal says why a spec cannot be published. The last good ring stays.
type Refusal struct {
	// Reason is the reason of the conditions.
	Reason v1alpha1.ConditionReason
	// Message names the field, the value and the limit.
	Message string
	// Waits says that it is likely to end without anybody's help.
	Waits bool
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

func refusef(reason v1alpha1.ConditionReason, format string, args ...any) error {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Desired is the ring that a spec asks for.
type Desired struct {
	Ring *Ring
	// Addresses gives the dial address of each backend whose identity is not its address, where one is known.
	Addresses map[string]string
	// Down are the sorted identities of the backends that cannot serve.
	Down []string
	// Declared are the sorted identities of spec.backends, where there are sources beside them.
	Declared []string
	// Drained is how many backends have weight 0.
	Drained int
	// Warnings are oddities of the spec; those of the ring are its own.
	Warnings []v1alpha1.Warning
	// Chunks is how many ConfigMaps there are for each slot, needed or not.
	Chunks int
	// Slot is where Ring is published; "" is slot a.
	Slot routing.Slot
	// Candidate is published in the other slot; nil for none. Then Addresses and Down are about the backends of both.
	Candidate *Beside
	// KeepsOther says that the other slot keeps the ring that is in it, although nobody is directed there any more.
	KeepsOther bool
}

// Beside is a candidate that is published beside a ring.
type Beside struct {
	Ring *Ring
	// Declared is as in [Desired].
	Declared []string
	// Revision is its number, which is above that of the ring.
	Revision int64
	// Split says which keys it answers; nil for none.
	Split *routing.Split
}

func (d *Desired) slot() routing.Slot { return cmp.Or(d.Slot, routing.SlotA) }

// Build returns the first ring that spec asks for, of the backends that it declares itself. The error is a [Refusal]. The
// fields that the schema gives defaults to must have them.
func Build(spec v1alpha1.HashRingSpec) (*Desired, error) { return BuildFrom(spec, nil) }

// BuildFrom returns the ring that spec asks for where previous is published, which can be nil. What that has trimmed stays
// trimmed under V3, where it helps; other versions do not depend on it.
func BuildFrom(spec v1alpha1.HashRingSpec, previous *ring.Ring) (*Desired, error) {
	return BuildLoaded(spec, nil, previous)
}

// BuildLoaded is [BuildFrom] with the factors on weights that are in a status; nil for none.
func BuildLoaded(spec v1alpha1.HashRingSpec, load *v1alpha1.LoadWeights, previous *ring.Ring) (*Desired, error) {
	composer, err := newComposer(spec)
	if err != nil {
		return nil, err
	}
	composer.load = lastLoadWeights(load)
	all := takeRoster(spec, nil)
	config := composer.config
	for _, m := range all.members {
		config.Backends = append(config.Backends, composer.backend(m.backend))
	}
	var recipe []byte
	if previous != nil {
		recipe = previous.Recipe()
	}
	return composer.desired(Afresh{}, config, recipe, all, nil, routing.File{})
}

// desired builds the ring of a config and says how it is published.
func (c *composer) desired(b Builder, config ring.Config, previous []byte, all roster, base *baseRing, last routing.File) (*Desired, error) {
	if weighted(config.Backends) == 0 {
		return nil, refusef(v1alpha1.ReasonNoBackends, "%s: none of %d backends has a weight above 0", c.field(), len(config.Backends))
	}
	if n := len(config.Backends); n > MaxBackends {
		return nil, refusef(v1alpha1.ReasonInvalidSpec, "%s: %d backends in all, the limit is %d",
			c.field(), max(n, len(all.members)), MaxBackends) // Not all that join have a clock.
	}
	request := Request{Config: config, Encoding: cmp.Or(c.spec.Publication.Encoding, v1alpha1.EncodingAuto), Chunks: chunks(c.spec)}
	if config.Algorithm.Version == ring.V3 {
		request.Previous = previous
	}
	built, err := b.Build(request)
	if err != nil {
		return nil, explain(c.spec, err)
	}
	d := &Desired{
		Ring: built, Drained: len(config.Backends) - weighted(config.Backends), Warnings: withoutEffect(c.spec), Chunks: request.Chunks,
	}
	ids := idsOf(config.Backends)
	d.Declared = declaredIDs(c.spec, all, base, ids)
	if err := checkRecord(built.Recipe(), d.Declared); err != nil {
		return nil, err
	}
	d.Addresses, d.Down = dialled(c.spec, all, base, last, ids)
	return d, nil
}

// field names where the backends come from.
func (c *composer) field() string {
	if len(c.spec.BackendsFrom) > 0 {
		return "spec.backends and spec.backendsFrom"
	}
	return "spec.backends"
}

func idsOf(backends []ring.Backend) []string {
	ids := make([]string, len(backends))
	for i, b := range backends {
		ids[i] = b.ID
	}
	return ids
}

// chunks returns how many ConfigMaps a slot may take. An object that was admitted under an older schema does not say.
func chunks(spec v1alpha1.HashRingSpec) int { return max(int(spec.Publication.Chunks), 1) }

// composer translates a spec into the terms of the engine.
type composer struct {
	spec v1alpha1.HashRingSpec
	// config is the ring without its backends.
	config    ring.Config
	selectors []labels.Selector
	// load are the factors on the weights; nil for none.
	load *LoadWeights
}

// identities translates spec.identity into the terms of the engine.
var identities = map[v1alpha1.Identity]ring.Identity{
	v1alpha1.IdentityAddress: ring.IdentityAddress, v1alpha1.IdentityNGINX: ring.IdentityNGINX, v1alpha1.IdentityName: ring.IdentityName,
}

func newComposer(spec v1alpha1.HashRingSpec) (*composer, error) {
	algorithm, err := algorithm(spec.Algorithm)
	if err != nil {
		return nil, err
	}
	views, err := views(spec)
	if err != nil {
		return nil, err
	}
	c := &composer{spec: spec, config: ring.Config{
		Algorithm: algorithm,
		Views:     views,
		Identity:  identities[spec.Identity],
		MaxPoints: maxPoints(algorithm.Version),
	}}
	if c.selectors, err = selectors(spec.Features); err != nil {
		return nil, err
	}
	for _, f := range spec.Features {
		c.config.Features = append(c.config.Features, f.Name)
	}
	return c, checkNames(spec.Backends)
}

func (c *composer) backend(b v1alpha1.Backend) ring.Backend {
	backend := ring.Backend{ID: identity(c.spec.Identity, b), Zone: b.Zone}
	backend.Weight = c.load.apply(backend.ID, uint32(weight(b)))
	for k, selector := range c.selectors {
		if selector.Matches(labels.Set(b.Labels)) {
			backend.Features = append(backend.Features, c.spec.Features[k].Name)
		}
	}
	return backend
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

// explain turns an error of the engine into one that speaks of the spec.
func explain(spec v1alpha1.HashRingSpec, err error) error {
	var refusal *Refusal
	var duplicate *ring.DuplicateError
	var invalid *ring.ConfigError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &duplicate) && max(duplicate.First, duplicate.Second) < len(spec.Backends):
		return refusef(v1alpha1.ReasonDuplicateIdentity, "spec.backends[%d] %q and spec.backends[%d] %q have the same identity %q",
			duplicate.First, spec.Backends[duplicate.First].Name, duplicate.Second, spec.Backends[duplicate.Second].Name, duplicate.ID)
	case errors.As(err, &invalid):
		field := strings.Replace(strings.TrimSuffix(invalid.Field, ".id"), "views[", "viewList[", 1)
		return refusef(v1alpha1.ReasonInvalidSpec, "spec.%s: %q: %s", field, invalid.Value, invalid.Reason)
	default:
		return refusef(v1alpha1.ReasonInvalidSpec, "spec: %v", err)
	}
}
