// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	clusterservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	listenerservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	routeservicev3 "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/config"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/ringwright/ringwright/internal/loadreport"
)

const (
	defaultMaxStreams = 10_000
	defaultMaxNames   = 2_000
	// sweepInterval is at most half as long as what nobody watches is kept.
	sweepInterval = time.Minute
)

// Options say how a Server serves.
type Options struct {
	// Identifier is unique to this start of this replica: versions begin with it.
	Identifier string
	// Sink takes load reports, a batch for each message of a client; the client waits. Nil drops them.
	Sink func(context.Context, []loadreport.Report)
	// Authorize says whether a client may have a stream, with the context of the stream. Nil allows all. An error without a gRPC status is
	// PERMISSION_DENIED.
	Authorize func(context.Context, Client) error
	// Logger is told of streams that are refused, and of what clients reject.
	Logger logr.Logger
	// Metrics is where the metrics are registered; nil for nowhere.
	Metrics prometheus.Registerer
	// MaxStreams is how many discovery streams there are at most, and how many of load reports; 0 is 10,000.
	MaxStreams int
	// MaxNames is how many resources of a type a stream watches at most; 0 is 2,000.
	MaxNames int

	// now is for tests; nil is time.Now.
	now func() time.Time
}

// Client is who opens a stream.
type Client struct {
	// Node is the ID of its node, Zone the zone, and UserAgent the name of its xDS library. They are what it says of itself.
	Node, Zone, UserAgent string
}

// Server serves assignments. It is safe for concurrent use.
type Server struct {
	options  Options
	caches   []*typeCache
	streams  *streams
	metrics  *metrics
	discover server.Server
	stop     context.CancelFunc
	stopped  context.Context
	running  sync.WaitGroup
	synced   chan struct{}
	sync     func()

	mu       sync.RWMutex
	policies map[string]*policy
}

// New returns a Server without assignments. Its Close must be called.
func New(options Options) *Server {
	options.MaxStreams = cmp.Or(options.MaxStreams, defaultMaxStreams)
	options.MaxNames = cmp.Or(options.MaxNames, defaultMaxNames)
	if options.now == nil {
		options.now = time.Now
	}
	s := &Server{options: options, policies: make(map[string]*policy), synced: make(chan struct{})}
	s.sync = sync.OnceFunc(func() { close(s.synced) })
	s.stopped, s.stop = context.WithCancel(context.Background())
	mux := &cache.MuxCache{
		Classify:      (*discoveryv3.DiscoveryRequest).GetTypeUrl,
		ClassifyDelta: (*discoveryv3.DeltaDiscoveryRequest).GetTypeUrl,
		Caches:        make(map[string]cache.Cache),
	}
	for _, t := range resourceTypes() {
		c := &typeCache{
			resourceType: t, prefix: options.Identifier + "/", find: s.find, refuse: s.refuse, maxNames: options.MaxNames,
			views: make(map[view]*viewCache),
		}
		s.caches = append(s.caches, c)
		mux.Caches[t.url] = c
	}
	s.streams = newStreams()
	s.metrics = newMetrics(s)
	s.discover = server.NewServer(s.stopped, mux, s.callbacks(), config.DeactivateLegacyWildcard())
	s.running.Go(s.sweepUntilStopped)
	return s
}

// resourceTypes are those that are served, in the order in which a client comes to need them when something changes: endpoints before what
// leads to them would not be asked for, and clusters before routes.
func resourceTypes() []resourceType {
	one := func(view) view { return view{} }
	always := func(p, q *policy) bool { return true }
	return []resourceType{
		{resource.ClusterType, "clusters", func(v view) view { return view{grpc: v.grpc} },
			func(p *policy, v view) types.Resource { return p.cluster(v) }, (*policy).sameCluster},
		{resource.EndpointType, "endpoints", func(v view) view { return v },
			func(p *policy, v view) types.Resource { return p.assignment(v) }, (*policy).sameEndpoints},
		{resource.RouteType, "routes", one, func(p *policy, _ view) types.Resource { return p.route() }, always},
		{resource.ListenerType, "listeners", one, func(p *policy, _ view) types.Resource { return p.listener() }, always},
	}
}

// Register adds the services to a gRPC server: aggregated, endpoint, cluster, route and listener discovery, each of them with the
// state of the world and incremental, and load reporting.
func (s *Server) Register(registrar grpc.ServiceRegistrar) {
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(registrar, s.discover)
	endpointservicev3.RegisterEndpointDiscoveryServiceServer(registrar, s.discover)
	clusterservicev3.RegisterClusterDiscoveryServiceServer(registrar, s.discover)
	routeservicev3.RegisterRouteDiscoveryServiceServer(registrar, s.discover)
	listenerservicev3.RegisterListenerDiscoveryServiceServer(registrar, s.discover)
	loadstatsv3.RegisterLoadReportingServiceServer(registrar, &loadReporting{server: s})
}

// Set serves an assignment. Setting what is served already sends nothing. Errors: *StaleError, or what is wrong with the assignment.
func (s *Server) Set(a Assignment) error {
	next, err := newPolicy(a)
	if err != nil {
		s.metrics.refusedAssignments.WithLabelValues("invalid").Inc()
		return fmt.Errorf("assignment of policy %q, version %d: %w", a.Policy, a.Version, err)
	}
	s.mu.Lock()
	served := s.policies[a.Policy]
	if served != nil {
		if err := next.stale(served); err != nil {
			s.mu.Unlock()
			s.metrics.refusedAssignments.WithLabelValues("stale").Inc()
			return err
		}
	}
	s.policies[a.Policy] = next
	s.mu.Unlock()
	for _, c := range s.caches {
		if served != nil && c.same(served, next) {
			continue
		}
		if err := c.refresh(a.Policy); err != nil {
			return fmt.Errorf("serving %s of %s: %w", c.label, a.Policy, err)
		}
	}
	if served == nil || served.ReportInterval != next.ReportInterval {
		s.streams.wakeWatchers(a.Policy)
	}
	return nil
}

// Delete ends the service of a policy: clients are told that it does not exist. The epochs of a policy that comes back begin anew.
func (s *Server) Delete(policy string) {
	s.mu.Lock()
	_, found := s.policies[policy]
	delete(s.policies, policy)
	s.mu.Unlock()
	if !found {
		return
	}
	for i := range s.caches { // What leads to others goes first.
		c := s.caches[len(s.caches)-1-i]
		if err := c.refresh(policy); err != nil {
			s.options.Logger.Error(err, "Ending the service of a policy", "policy", policy, "type", c.label)
		}
	}
	s.streams.wakeWatchers(policy)
}

// Synced says that all policies that there are have been set. Streams wait for it, since what a client is not given no longer exists for it.
func (s *Server) Synced() { s.sync() }

// Close ends all streams, and refuses new ones.
func (s *Server) Close() {
	s.stop()
	s.running.Wait()
	if s.options.Metrics != nil {
		s.options.Metrics.Unregister(s.metrics)
	}
}

func (s *Server) find(name string) *policy {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.policies[name]
}

func (s *Server) sweepUntilStopped() {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stopped.Done():
			return
		case <-ticker.C:
			s.sweep()
		}
	}
}

// sweep drops what nobody watches.
func (s *Server) sweep() {
	for _, c := range s.caches {
		c.sweep()
	}
	s.mu.RLock()
	policies := slices.Collect(maps.Values(s.policies))
	s.mu.RUnlock() // Who watches holds the lock of a cache when it asks for a policy.
	for _, p := range policies {
		if !p.empty() && !s.endpoints().watches(p.Policy) {
			p.forget()
		}
	}
}

func (s *Server) endpoints() *typeCache { return s.caches[1] }
