// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/gateway"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/loadsource"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/observe"
	"github.com/ringwright/ringwright/internal/shard"
	"github.com/ringwright/ringwright/internal/weights"
	"github.com/ringwright/ringwright/internal/xds"
)

// gracefulShutdown is how long what runs may take after a signal: the weights are stored within it.
const gracefulShutdown = 20 * time.Second

// Balancer is one replica.
type Balancer struct {
	ctrl.Manager
	servers *servers
}

// Address is where the gRPC services are, once it runs.
func (b *Balancer) Address() string { return b.servers.grpc.Addr().String() }

// HTTPAddress is where POST /v1/load is answered.
func (b *Balancer) HTTPAddress() string { return b.servers.http.Addr().String() }

// parts are what the roles of a replica share.
type parts struct {
	o         Options
	mgr       ctrl.Manager
	store     *loadreport.Store
	reports   *loadreport.Metrics
	board     *weights.Board
	own       *weights.Board
	shards    *shard.Shards
	resolver  *weights.Resolver
	directory *weights.Directory
	figures   *weights.Metrics
	forwarder *gateway.GRPCForwarder
	router    *gateway.Router
	authn     *authn.Authenticator
	xds       *xds.Server
	owner     *weights.Reconciler // nil where this replica owns nothing.
}

// New returns a replica that listens, ready to be started.
func New(cfg *rest.Config, o Options) (*Balancer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	scheme, err := manager.Scheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, managerOptions(scheme, o))
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := weights.AddIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	if len(o.Replicas) == 0 {
		if o.Replicas, err = sameUser(o.TokenFile); err != nil {
			return nil, err
		}
	}
	secure, err := newSecurity(o.CertDir)
	if err != nil {
		return nil, err
	}
	listening, err := listen(o)
	if err != nil {
		return nil, err
	}
	p, err := newParts(cfg, o, mgr, secure, listening.grpc.Addr().String())
	if err == nil {
		err = p.add(cfg, secure, listening)
	}
	if err != nil {
		listening.close()
		return nil, err
	}
	return &Balancer{Manager: mgr, servers: listening}, nil
}

func managerOptions(scheme *runtime.Scheme, o Options) ctrl.Options {
	return ctrl.Options{
		Scheme: scheme,
		Cache:  cache.Options{ByObject: observe.EndpointCacheOptions(), DefaultNamespaces: manager.Watched(o.Namespaces)},
		Metrics: manager.MetricsOptions(manager.Options{
			MetricsAddress: o.MetricsAddress, MetricsCertDir: o.MetricsCertDir, MetricsInsecure: o.MetricsInsecure,
		}),
		HealthProbeBindAddress:  o.ProbeAddress,
		GracefulShutdownTimeout: ptr.To(gracefulShutdown),
		Controller:              config.Controller{SkipNameValidation: ptr.To(o.SkipNameValidation)},
	}
}

func newParts(cfg *rest.Config, o Options, mgr ctrl.Manager, secure *security, address string) (*parts, error) {
	if o.Advertise != "" {
		address = o.Advertise
	}
	reviews, err := authenticationv1client.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client for TokenReviews: %w", err)
	}
	leases, err := client.New(cfg, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return nil, fmt.Errorf("making a client for Leases: %w", err)
	}
	p := &parts{
		o: o, mgr: mgr, board: weights.NewBoard(), own: weights.NewBoard(), directory: weights.NewDirectory(),
		reports: loadreport.NewMetrics(metrics.Registry), figures: weights.NewMetrics(metrics.Registry),
		resolver:  &weights.Resolver{Reader: mgr.GetClient(), Live: mgr.GetAPIReader(), Loopback: o.Loopback},
		forwarder: gateway.NewForwarder(gateway.ForwarderOptions{TokenFile: o.TokenFile, Credentials: secure.client()}),
		authn:     authn.New(authn.Options{Reviews: reviews.TokenReviews(), Audience: o.Audience}),
	}
	p.board.Stale = func(weights.Announcement) { p.figures.StaleEpoch() }
	p.store = loadreport.NewStore(loadreport.Limits{}, p.reports)
	self := shard.Member{Address: address}
	if o.has(RoleOwner) {
		self.Name = o.Name
	}
	p.shards = shard.New(shard.Options{
		Client: leases, Namespace: o.Namespace, Self: self, LeaseDuration: o.LeaseDuration, RenewInterval: o.RenewInterval,
	})
	p.router = gateway.NewRouter(gateway.RouterOptions{
		Owners: owners{p.shards, o.Name}, Store: p.store, Forwarder: p.forwarder, Metrics: p.reports,
	})
	return p, nil
}

// owners says whom reports go to.
type owners struct {
	shards *shard.Shards
	self   string
}

// Owner implements gateway.Owners.
func (o owners) Owner(policy string) (address string, local, ok bool) {
	member, ok := o.shards.Owner(policy)
	return member.Address, member.Name == o.self, ok
}

// add gives the manager everything that runs.
func (p *parts) add(cfg *rest.Config, secure *security, listening *servers) error {
	if err := p.addProbes(); err != nil {
		return err
	}
	runnables := []managed{
		always(p.keepLease), always(p.router.Run),
		always(func(ctx context.Context) error { <-ctx.Done(); return p.forwarder.Close() }),
		&weights.Follower{Members: p.shards, Self: p.o.Name, Conn: p.forwarder.Conn, Board: p.board},
	}
	if p.o.has(RoleXDS) {
		p.xds = xds.New(xds.Options{
			Identifier: p.o.Name + "-" + rand.Text()[:8], Sink: func(_ context.Context, reports []loadreport.Report) { p.router.Route(reports...) },
			Authorize: p.authorizeClient, Logger: p.mgr.GetLogger(), Metrics: metrics.Registry, MaxStreams: p.o.MaxStreams,
		})
	}
	if p.o.has(RoleOwner) {
		if err := p.addOwner(cfg); err != nil {
			return err
		}
	}
	view := &weights.View{Client: p.mgr.GetClient(), Resolver: p.resolver, Board: p.board, Directory: p.directory}
	if p.xds != nil {
		view.Serving = p.xds
	}
	if err := view.SetupWithManager(p.mgr, p.o.Concurrency); err != nil {
		return fmt.Errorf("setting up what serves the weights: %w", err)
	}
	runnables = append(runnables, always(p.serve(secure, listening)))
	for _, runnable := range runnables {
		if err := p.mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding the parts of the balancer: %w", err)
		}
	}
	return nil
}

// addOwner adds what computes weights.
func (p *parts) addOwner(cfg *rest.Config) error {
	pods, err := metricsclient.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making a client for metrics.k8s.io: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	sources := weights.NewSources(ctx, weights.SourceOptions{
		Store: p.store, Services: p.mgr.GetAPIReader(), Pods: p.mgr.GetAPIReader(), Secrets: p.mgr.GetAPIReader(), Metrics: pods.MetricsV1beta1(),
		Streams: loadsource.NewStreams(p.o.MaxORCAStreams), Loopback: p.o.Loopback, Clock: clock.RealClock{},
	})
	if err := p.mgr.Add(always(func(ctx context.Context) error { <-ctx.Done(); cancel(); sources.Wait(); return nil })); err != nil {
		cancel()
		return fmt.Errorf("adding the sources: %w", err)
	}
	reconciler := &weights.Reconciler{
		Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Resolver: p.resolver, Shards: p.shards, Store: p.store, Sources: sources,
		Board: p.board, Own: p.own, Recorder: p.mgr.GetEventRecorder("ringwright-balancer"), Clock: clock.RealClock{}, Metrics: p.figures,
		Self: p.o.Name, Pace: p.o.Pace,
	}
	if err := reconciler.SetupWithManager(p.mgr, p.o.Concurrency); err != nil {
		return fmt.Errorf("setting up the owner of policies: %w", err)
	}
	p.shards.OnChange(reconciler.ShardsChanged)
	p.owner = reconciler
	return nil
}

// keepLease keeps this replica among the owners. At the end its weights are stored first, and then the others are told to take its policies over.
func (p *parts) keepLease(ctx context.Context) error {
	lease, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	var flushErr error
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		defer release()
		<-ctx.Done()
		if p.owner != nil {
			flushErr = p.owner.Flush(context.WithoutCancel(ctx))
		}
	}()
	err := p.shards.Start(lease)
	<-stored
	return errors.Join(flushErr, err)
}

// managed is what a manager runs on every replica.
type managed interface {
	Start(ctx context.Context) error
	NeedLeaderElection() bool
}

// always is a function that every replica runs.
type always func(context.Context) error

func (f always) Start(ctx context.Context) error { return f(ctx) }

func (always) NeedLeaderElection() bool { return false }

// addProbes makes a replica alive as long as it answers, and ready when it knows the policies and the owners.
func (p *parts) addProbes() error {
	if err := p.mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness probe: %w", err)
	}
	if err := p.mgr.AddReadyzCheck("synced", func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !p.mgr.GetCache().WaitForCacheSync(ctx) || !p.shards.Synced() {
			return fmt.Errorf("the caches are not filled yet")
		}
		return nil
	}); err != nil {
		return fmt.Errorf("adding the readiness probe: %w", err)
	}
	return nil
}
