// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/utils/clock"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// Target is an endpoint that a pod is, in one policy.
type Target struct {
	// Policy is namespace/name.
	Policy string
	// Endpoint is the ID of the endpoint.
	Endpoint string
	// CustomMetric is the name of the figure for the metric Custom, "" where the policy has none.
	CustomMetric string
	// Interval is how often the pod is expected to push.
	Interval time.Duration
}

// Directory knows which policies balance a pod.
type Directory interface {
	// Endpoints returns the endpoints that a pod is, those of policies with the source Push, in the order of the policies.
	Endpoints(podUID string) []Target
}

// Owners knows which replica has a policy.
type Owners interface {
	// Owner returns the address of the replica that has a policy, host:port, and whether it is this one; ok is false where none has it.
	Owner(policy string) (address string, local bool, ok bool)
}

// Forwarder carries reports to another replica.
type Forwarder interface {
	// Forward sends at most MaxBatch reports to the replica at an address, and returns when it has answered.
	Forward(ctx context.Context, address string, reports []loadreport.Report) error
}

// MaxBatch is how many reports go to a replica at a time.
const MaxBatch = 10_000

// Options say where reports go. Those that are 0 have the defaults.
type Options struct {
	// Directory knows the pods.
	Directory Directory
	// Sink takes the reports, such as Router.Route.
	Sink func(reports ...loadreport.Report)
	// Authenticator says who calls.
	Authenticator *authn.Authenticator
	// Rate is how many reports a second one pod may send, default 2, and Burst how many at a time, default 5.
	Rate  float64
	Burst int
	// Pods is how many pods are remembered, default 200,000.
	Pods int
	// Metrics counts what is refused.
	Metrics *loadreport.Metrics
	// Clock is the real one by default.
	Clock clock.PassiveClock
}

// Gateway takes what pods push.
type Gateway struct {
	balancerv1.UnimplementedLoadReportsServer
}

// New returns one.
func New(Options) *Gateway { return &Gateway{} }

// Handler answers POST /v1/load, with authentication.
func (g *Gateway) Handler() http.Handler { return http.NotFoundHandler() }

// Register registers the service LoadReports, whose calls are authenticated by g itself.
func (g *Gateway) Register(server grpc.ServiceRegistrar) {
	balancerv1.RegisterLoadReportsServer(server, g)
}

// RouterOptions say how reports reach their owners. Those that are 0 have the defaults.
type RouterOptions struct {
	// Owners knows them.
	Owners Owners
	// Store is this replica's own.
	Store *loadreport.Store
	// Forwarder reaches the others.
	Forwarder Forwarder
	// Delay is how long a report waits for others at most, default 500ms and at most 1s.
	Delay time.Duration
	// Queue is how many reports wait for one replica, default 100,000. Beyond that the oldest are dropped and counted.
	Queue int
	// Metrics counts what is dropped.
	Metrics *loadreport.Metrics
	// Clock is the real one by default.
	Clock clock.WithTicker
}

// Router carries reports of every source to the owners of their policies.
type Router struct{}

// NewRouter returns one, which carries reports while Run runs.
func NewRouter(RouterOptions) *Router { return &Router{} }

// Route takes reports. It does not block.
func (r *Router) Route(reports ...loadreport.Report) {}

// Run carries reports until ctx ends, and then once more.
func (r *Router) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// ForwarderOptions say how to reach other replicas.
type ForwarderOptions struct {
	// TokenFile has the token of this replica's service account. It is read anew when it changes.
	TokenFile string
	// Credentials are those of the transport, default insecure.
	Credentials credentials.TransportCredentials
	// Timeout is for one batch, default 5s.
	Timeout time.Duration
}

// GRPCForwarder reaches other replicas by the service Replicas.
type GRPCForwarder struct{}

// NewForwarder returns one.
func NewForwarder(ForwarderOptions) *GRPCForwarder { return &GRPCForwarder{} }

// Forward implements Forwarder.
func (f *GRPCForwarder) Forward(ctx context.Context, address string, reports []loadreport.Report) error {
	return nil
}

// Conn returns the connection to a replica, which Close closes, for other calls with the same credentials.
func (f *GRPCForwarder) Conn(address string) (*grpc.ClientConn, error) { return nil, nil }

// Close closes all connections.
func (f *GRPCForwarder) Close() error { return nil }

// ReceiverOptions say who may send reports.
type ReceiverOptions struct {
	// Users are the names of the users that may, such as "system:serviceaccount:ringwright:balancer".
	Users []string
	// Store takes the reports.
	Store *loadreport.Store
	// Clock is the real one by default.
	Clock clock.PassiveClock
}

// Receiver is the method Report of the service Replicas. Its calls have passed authn's interceptors.
type Receiver struct{}

// NewReceiver returns one.
func NewReceiver(ReceiverOptions) *Receiver { return &Receiver{} }

// Report takes the reports of another replica.
func (r *Receiver) Report(ctx context.Context, request *balancerv1.ReportRequest) (*balancerv1.ReportResponse, error) {
	return nil, nil
}

// Authorize says whether a call is from another replica: nil, or the error of a call.
func (r *Receiver) Authorize(ctx context.Context) error { return nil }
