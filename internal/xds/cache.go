// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	// maxZoneLength is that of a label's value, which zones of nodes are.
	maxZoneLength = 63
	// maxViews is how many pairs of a zone and a kind of client there are at most: each has resources of its own, whether a rule names the zone or not.
	maxViews = 512
)

// view is what of a client decides what it is given.
type view struct {
	zone string
	grpc bool
}

// viewOf reads a node. A zone that no rule can name is none.
func viewOf(node *corev3.Node) view {
	zone := node.GetLocality().GetZone()
	if len(zone) > maxZoneLength {
		zone = ""
	}
	return view{zone: zone, grpc: strings.HasPrefix(strings.ToLower(node.GetUserAgentName()), "grpc")}
}

// resourceType is one type of resource.
type resourceType struct {
	url, label string
	// narrow leaves of a view what the resources of the type depend on.
	narrow func(view) view
	build  func(*policy, view) types.Resource
	// same says that two policies have the same resources.
	same func(p, q *policy) bool
}

// typeCache has the resources of one type that are watched: a LinearCache for each view, made when the first client of it comes. What nobody
// watches is dropped by the second sweep.
type typeCache struct {
	resourceType
	prefix string
	find   func(name string) *policy
	// refuse counts why a stream ends.
	refuse func(reason string, code codes.Code, format string, values ...any) error
	// maxNames is how many resources a stream may watch.
	maxNames int

	mu    sync.Mutex
	views map[view]*viewCache
}

// viewCache is what the clients of one view watch.
type viewCache struct {
	linear *cache.LinearCache
	names  map[string]*watched
}

// watched is a name that is watched, or was until lately.
type watched struct {
	watches int
	// resource is what is served, nil where there is no such policy.
	resource types.Resource
	// idle says that the last sweep found it without watches.
	idle bool
}

var _ cache.Cache = (*typeCache)(nil)

// CreateWatch is the state of the world's.
func (c *typeCache) CreateWatch(r *cache.Request, sub cache.Subscription, out chan cache.Response) (func(), error) {
	return c.watch(r.GetNode(), sub, func(linear *cache.LinearCache) (func(), error) {
		return linear.CreateWatch(r, named{sub}, out)
	})
}

// CreateDeltaWatch is the incremental one.
func (c *typeCache) CreateDeltaWatch(r *cache.DeltaRequest, sub cache.Subscription, out chan cache.DeltaResponse) (func(), error) {
	return c.watch(r.GetNode(), sub, func(linear *cache.LinearCache) (func(), error) {
		if sub.IsWildcard() && len(sub.SubscribedResources()) == 0 {
			return cache.NewLinearCache(c.url).CreateDeltaWatch(r, sub, out) // It waits for an answer, even one without resources.
		}
		return linear.CreateDeltaWatch(r, named{sub}, out)
	})
}

// Fetch is not offered.
func (c *typeCache) Fetch(context.Context, *cache.Request) (cache.Response, error) {
	return nil, status.Error(codes.Unimplemented, "resources are served on streams only")
}

// named is a subscription whose wildcard stands for nothing: a client is given what it names.
type named struct{ cache.Subscription }

// IsWildcard is never so.
func (named) IsWildcard() bool { return false }

// watch makes what is asked for, and holds it until the function that it returns is called.
func (c *typeCache) watch(node *corev3.Node, sub cache.Subscription, open func(*cache.LinearCache) (func(), error)) (func(), error) {
	names := slices.Collect(maps.Keys(sub.SubscribedResources()))
	if len(names) > c.maxNames {
		return nil, c.refuse("names", codes.ResourceExhausted, "a stream watches at most %d resources of a type; got %d", c.maxNames, len(names))
	}
	key := c.narrow(viewOf(node))
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.view(key)
	if v == nil {
		return nil, c.refuse("zones", codes.ResourceExhausted, "clients are in %d zones already, gRPC and others counted apart; got another, %q", maxViews, key.zone)
	}
	for i, name := range names {
		if err := v.hold(name, c.find(name), key, c.build); err != nil {
			v.release(names[:i+1])
			return nil, err
		}
	}
	cancel, err := open(v.linear)
	if err != nil {
		v.release(names)
		return nil, err
	}
	return sync.OnceFunc(func() {
		if cancel != nil {
			cancel()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		v.release(names)
	}), nil
}

// view returns what the clients of a view watch, nil where there are too many views.
func (c *typeCache) view(key view) *viewCache {
	v := c.views[key]
	if v == nil && len(c.views) < maxViews {
		v = &viewCache{linear: cache.NewLinearCache(c.url, cache.WithVersionPrefix(c.prefix)), names: make(map[string]*watched)}
		c.views[key] = v
	}
	return v
}

// hold counts a watch, and makes the resource with the first.
func (v *viewCache) hold(name string, p *policy, key view, build func(*policy, view) types.Resource) error {
	w := v.names[name]
	if w == nil {
		w = &watched{}
		v.names[name] = w
	}
	w.watches++
	if w.resource != nil || p == nil {
		return nil
	}
	w.resource = build(p, key)
	return v.linear.UpdateResource(name, w.resource)
}

// release takes watches back. A name that nothing is served of is forgotten at once, so that clients cannot pile them up.
func (v *viewCache) release(names []string) {
	for _, name := range names {
		w := v.names[name]
		w.watches--
		if w.watches == 0 && w.resource == nil {
			delete(v.names, name)
		}
	}
}

// refresh sends what changed of a policy to those who watch it.
func (c *typeCache) refresh(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(name) // Not what the caller set: of two that set at a time the last is served.
	for key, v := range c.views {
		w := v.names[name]
		if w == nil {
			continue
		}
		if p == nil || w.watches == 0 { // What nobody watches is made anew when somebody does.
			if err := v.drop(name, w); err != nil {
				return err
			}
			continue
		}
		resource := c.build(p, key)
		if w.resource != nil && proto.Equal(w.resource, resource) {
			continue
		}
		w.resource = resource
		if err := v.linear.UpdateResource(name, resource); err != nil {
			return err
		}
	}
	return nil
}

// drop ends the service of a name.
func (v *viewCache) drop(name string, w *watched) error {
	if w.watches == 0 {
		delete(v.names, name)
	}
	if w.resource == nil {
		return nil
	}
	w.resource = nil
	return v.linear.DeleteResource(name)
}

// sweep drops what this sweep and the one before find without watches. A client that answers has no watch for a moment.
func (c *typeCache) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, v := range c.views {
		for name, w := range v.names {
			if w.watches == 0 && w.idle {
				_ = v.drop(name, w) // It fails for those who are told, and there are none.
			}
			w.idle = w.watches == 0
		}
		if len(v.names) == 0 {
			delete(c.views, key)
		}
	}
}

// watches says whether anybody is served a name.
func (c *typeCache) watches(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.views {
		if v.names[name] != nil {
			return true
		}
	}
	return false
}

// count returns how many resources there are, and how many names are watched that stand for none.
func (c *typeCache) count() (resources, unknown int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.views {
		for _, w := range v.names {
			if w.resource != nil {
				resources++
			} else {
				unknown++
			}
		}
	}
	return resources, unknown
}
