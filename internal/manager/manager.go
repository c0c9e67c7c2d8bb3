// SPDX-License-Identifier: Apache-2.0

// Package manager puts the operator together: scheme, cache, metrics, probes, leader election and controllers. The
// program in cmd/manager and the tests start the same one.
package manager

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
	"github.com/ringwright/ringwright/internal/controller"
	"github.com/ringwright/ringwright/internal/gate"
	"github.com/ringwright/ringwright/internal/migrationapi"
	"github.com/ringwright/ringwright/internal/observe"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/publish"
	"github.com/ringwright/ringwright/internal/ringcache"
	"github.com/ringwright/ringwright/internal/telemetry"
)

// LeaderElectionID is the name of the Lease that the leader holds.
const LeaderElectionID = "ringwright-manager"

// gracefulShutdown is how long running reconciles may take after a signal; the Deployment's grace period is longer.
const gracefulShutdown = 20 * time.Second

// CatalogDelay is how long changes are collected before the catalog is written.
const CatalogDelay = 10 * time.Second

// Options are what the flags of cmd/manager set.
type Options struct {
	// MetricsAddress is where metrics are served, "0" for nowhere.
	MetricsAddress string
	// MetricsCertDir holds tls.crt and tls.key of the metrics server; "" for a self-signed certificate.
	MetricsCertDir string
	// MetricsInsecure serves metrics by plain HTTP to everybody: for a loopback address only.
	MetricsInsecure bool
	// ProbeAddress is where /healthz and /readyz are served, "0" for nowhere.
	ProbeAddress string
	// LeaderElection makes sure that only one of several replicas works.
	LeaderElection bool
	// LeaderElectionNamespace is where the Lease lives; "" is PodNamespace.
	LeaderElectionNamespace string
	// PodNamespace is the namespace that the operator runs in; "" where it runs in none.
	PodNamespace string
	// Namespaces are those whose rings are published; without any, all.
	Namespaces []string
	// Concurrency is how many HashRings are reconciled at a time; at least 1.
	Concurrency int
	// MaxPoints is how many points the rings have that are built at a time, together and each; 0 is [plan.MaxPoints], which is
	// the most.
	MaxPoints uint64
	// CatalogNamespace is where the catalog of all rings is, the namespace that the operator runs in; "" for none.
	CatalogNamespace string
	// CatalogDelay is how long changes are collected before the catalog is written; 0 is [CatalogDelay].
	CatalogDelay time.Duration
	// CatalogCopies is how many copies of the catalog are kept, 0 for none, and CatalogCopyInterval how old the newest is before
	// the next is taken.
	CatalogCopies       int
	CatalogCopyInterval time.Duration
	// TouchRate is how many pods are touched a second, for HashRings that say TouchPods; 0 is [controller.DefaultTouchRate].
	TouchRate int
	// MigrationInterval is how often a RingMigration is looked at; 0 is [migrationapi.DefaultInterval]. A soak is credited with at most
	// twice of it at once.
	MigrationInterval time.Duration
	// ConsumerLoopback has consumers asked at addresses of this host, and GateLoopback lets gates ask there, as tests have them.
	ConsumerLoopback, GateLoopback bool
	// SkipNameValidation allows several managers in one process, as tests have them.
	SkipNameValidation bool
}

// Scheme returns the types that the operator reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("composing the scheme: %w", err)
		}
	}
	return scheme, nil
}

// New returns a manager with all controllers, ready to be started.
func New(cfg *rest.Config, o Options) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	options := ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(o),
		Metrics:                       MetricsOptions(o),
		HealthProbeBindAddress:        o.ProbeAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionReleaseOnCancel: true, // Nothing runs behind Start in cmd/manager, so a successor need not wait.
		GracefulShutdownTimeout:       ptr.To(gracefulShutdown),
		Controller:                    config.Controller{SkipNameValidation: ptr.To(o.SkipNameValidation)},
	}
	var leads *leadership
	if o.LeaderElection {
		if leads, err = newLeadership(cfg, leaseNamespace(o)); err != nil {
			return nil, err
		}
		options.LeaderElectionResourceLockInterface = leads.lock
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := addProbes(mgr); err != nil {
		return nil, err
	}
	if err := observe.AddIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	return mgr, addControllers(mgr, o, leads)
}

// cacheOptions keeps what is not Ringwright's, and all payload, out of the cache.
func cacheOptions(o Options) cache.Options {
	byObject := observe.CacheOptions()
	configMaps := publish.CacheOptions()
	configMaps.Namespaces = configMapNamespaces(o)
	byObject[&corev1.ConfigMap{}] = configMaps
	byObject[&appsv1.ControllerRevision{}] = publish.RecordCacheOptions()
	return cache.Options{ByObject: byObject, DefaultNamespaces: Watched(o.Namespaces)}
}

// MetricsOptions says how metrics are served: by TLS and to those who may, unless o says otherwise.
func MetricsOptions(o Options) metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsAddress, CertDir: o.MetricsCertDir}
	if o.MetricsInsecure {
		return options
	}
	options.SecureServing = true
	options.FilterProvider = filters.WithAuthenticationAndAuthorization
	options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }}
	return options
}

// addProbes makes the operator alive as long as it answers, and ready when its caches are filled.
func addProbes(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return fmt.Errorf("the caches are not filled yet")
		}
		return nil
	}); err != nil {
		return fmt.Errorf("adding the readiness probe: %w", err)
	}
	return nil
}

func addControllers(mgr ctrl.Manager, o Options, leads *leadership) error {
	rings := ringcache.New(cmp.Or(o.MaxPoints, plan.MaxPoints))
	figures := telemetry.New(mgr.GetClient(), rings, metrics.Registry)
	if err := mgr.Add(figures); err != nil {
		return fmt.Errorf("adding the metrics: %w", err)
	}
	reconciler := controller.NewHashRingReconciler(mgr.GetClient(), mgr.GetAPIReader(), rings, mgr.GetEventRecorder("ringwright"), clock.RealClock{})
	reconciler.Metrics, reconciler.ConsumerLoopback = figures, o.ConsumerLoopback
	if leads != nil {
		reconciler.LeaderEpoch = leads.Epoch
	}
	reconciler.Touch = controller.NewPodTouchReconciler(mgr.GetClient(), clock.RealClock{}, cmp.Or(o.TouchRate, controller.DefaultTouchRate))
	reconciler.Touch.Metrics = figures
	if err := reconciler.SetupWithManager(mgr, controller.Options{Concurrency: o.Concurrency}); err != nil {
		return fmt.Errorf("setting up the HashRing controller: %w", err)
	}
	if err := reconciler.Touch.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the controller that touches pods: %w", err)
	}
	if err := addMigrations(mgr, o, reconciler); err != nil {
		return err
	}
	return addCatalog(mgr, o)
}

// addMigrations adds what carries RingMigrations out, on the rings that another controller publishes.
func addMigrations(mgr ctrl.Manager, o Options, rings *controller.HashRingReconciler) error {
	figures := telemetry.NewMigrations(mgr.GetClient(), metrics.Registry)
	reconciler := controller.NewRingMigrationReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("ringwright"), clock.RealClock{})
	reconciler.Published, reconciler.Consumers, reconciler.Hurry = rings.Publisher.Published, rings.Poller().Known, rings.Poller().Hurry
	reconciler.Interval, reconciler.Metrics = cmp.Or(o.MigrationInterval, migrationapi.DefaultInterval), figures
	gates := gate.NewRunner(gate.Options{
		Clock: clock.RealClock{}, Secrets: mgr.GetAPIReader(), Objects: mgr.GetAPIReader(), Samples: rings.Poller().Samples,
		Changed: reconciler.Measured, Registry: metrics.Registry, Loopback: o.GateLoopback,
	})
	reconciler.Gates = gates
	for _, runnable := range []interface{ Start(context.Context) error }{figures, gates} {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding what RingMigrations need: %w", err)
		}
	}
	if err := reconciler.SetupWithManager(mgr, controller.Options{Concurrency: o.Concurrency}); err != nil {
		return fmt.Errorf("setting up the RingMigration controller: %w", err)
	}
	return nil
}

// addCatalog adds the catalog where there is a namespace for it.
func addCatalog(mgr ctrl.Manager, o Options) error {
	if o.CatalogNamespace == "" {
		mgr.GetLogger().Info("There is no catalog: neither --catalog-namespace, nor POD_NAMESPACE, nor a service account says where it would be")
		return nil
	}
	reconciler := controller.NewCatalogReconciler(
		mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("ringwright"), clock.RealClock{}, controller.CatalogOptions{
			Namespace: o.CatalogNamespace, Delay: cmp.Or(o.CatalogDelay, CatalogDelay),
			Copies: catalog.Policy{Keep: o.CatalogCopies, Interval: o.CatalogCopyInterval},
		})
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the catalog controller: %w", err)
	}
	return nil
}
