// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/ringwright/ringwright/internal/loadreport"
)

// Options say how a Server serves.
type Options struct {
	// Identifier is unique to this start of this replica: versions begin with it.
	Identifier string
	// Sink takes load reports, a batch for each message of a client; the client waits. Nil drops them.
	Sink func(context.Context, []loadreport.Report)
	// Authorize says whether a client may have a stream, with the context of the stream. Nil allows all.
	Authorize func(context.Context, Client) error
	// Logger is told of streams that are refused.
	Logger logr.Logger
	// Metrics is where the metrics are registered; nil for nowhere.
	Metrics prometheus.Registerer
	// MaxStreams is how many discovery streams there are at most, and how many of load reports; 0 is 10,000.
	MaxStreams int
	// MaxNames is how many resources of a type a stream watches at most; 0 is 2,000.
	MaxNames int
}

// Client is who opens a stream.
type Client struct {
	// Node is the ID of its node, Zone the zone, and UserAgent the name of its xDS library. They are what it says of itself.
	Node, Zone, UserAgent string
}

// Server serves assignments. It is safe for concurrent use.
type Server struct{}

// New returns a Server without assignments. Its Close must be called.
func New(options Options) *Server {
	return &Server{}
}

// Register adds the services to a gRPC server: aggregated, endpoint, cluster, route and listener discovery, each of them with the
// state of the world and incremental, and load reporting.
func (s *Server) Register(registrar grpc.ServiceRegistrar) {}

// Set serves an assignment. Setting the one that is served does nothing. Errors: *StaleError, or what is wrong with the assignment.
func (s *Server) Set(a Assignment) error { return nil }

// Delete ends the service of a policy: clients are told that it does not exist. The epochs of a policy that comes back begin anew.
func (s *Server) Delete(policy string) {}

// Synced says that all policies that there are have been set. Streams wait for it, since what a client is not given no longer exists for it.
func (s *Server) Synced() {}

// Close ends all streams, and refuses new ones.
func (s *Server) Close() {}
