// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"cmp"
	"context"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// maxNodeLength is how long the ID of a node is at most.
const maxNodeLength = 253

// callbacks are what go-control-plane calls for each stream.
func (s *Server) callbacks() server.Callbacks {
	return server.CallbackFuncs{
		StreamOpenFunc: func(ctx context.Context, id int64, typeURL string) error {
			return s.opened(ctx, streamKey{sotw, id}, typeURL)
		},
		DeltaStreamOpenFunc: func(ctx context.Context, id int64, typeURL string) error {
			return s.opened(ctx, streamKey{delta, id}, typeURL)
		},
		StreamClosedFunc:      func(id int64, _ *corev3.Node) { s.streams.closed(streamKey{sotw, id}) },
		DeltaStreamClosedFunc: func(id int64, _ *corev3.Node) { s.streams.closed(streamKey{delta, id}) },
		StreamRequestFunc: func(id int64, r *discoveryv3.DiscoveryRequest) (err error) {
			r.Node, err = s.requested(streamKey{sotw, id}, r, func(names map[string]struct{}) {
				clear(names)
				add(names, r.GetResourceNames())
			})
			return err
		},
		StreamDeltaRequestFunc: func(id int64, r *discoveryv3.DeltaDiscoveryRequest) (err error) {
			r.Node, err = s.requested(streamKey{delta, id}, r, func(names map[string]struct{}) {
				add(names, r.GetResourceNamesSubscribe())
				for _, name := range r.GetResourceNamesUnsubscribe() {
					delete(names, name)
				}
			})
			return err
		},
		StreamResponseFunc: func(_ context.Context, _ int64, r *discoveryv3.DiscoveryRequest, _ *discoveryv3.DiscoveryResponse) {
			s.metrics.pushes.WithLabelValues(s.label(r.GetTypeUrl())).Inc()
		},
		StreamDeltaResponseFunc: func(_ int64, r *discoveryv3.DeltaDiscoveryRequest, _ *discoveryv3.DeltaDiscoveryResponse) {
			s.metrics.pushes.WithLabelValues(s.label(r.GetTypeUrl())).Inc()
		},
	}
}

func add(set map[string]struct{}, names []string) {
	for _, name := range names {
		set[name] = struct{}{}
	}
}

// opened waits until there is something to serve.
func (s *Server) opened(ctx context.Context, key streamKey, typeURL string) error {
	if !s.streams.add(key, &stream{ctx: ctx, typeURL: typeURL, endpoints: make(map[string]struct{})}, s.options.MaxStreams) {
		return s.refuse("too_many", codes.ResourceExhausted, "there are %d streams already", s.options.MaxStreams)
	}
	return s.waitUntilSynced(ctx)
}

func (s *Server) waitUntilSynced(ctx context.Context) error {
	select {
	case <-s.synced:
	case <-ctx.Done():
		return grpcstatus.FromContextError(ctx.Err()).Err()
	case <-s.stopped.Done():
	}
	if s.stopped.Err() != nil {
		return grpcstatus.Error(codes.Unavailable, "the server ends")
	}
	return nil
}

// request is what requests of both kinds have.
type request interface {
	GetNode() *corev3.Node
	GetTypeUrl() string
	GetErrorDetail() *status.Status
}

// requested looks at a request and returns the node of the stream, which does not change: what was sent depends on it. If the request is for
// endpoints, watch brings those that the stream watches up to date.
func (s *Server) requested(key streamKey, r request, watch func(names map[string]struct{})) (*corev3.Node, error) {
	current := s.streams.get(key)
	typeURL := cmp.Or(r.GetTypeUrl(), current.typeURL)
	label := s.label(typeURL)
	if label == "" {
		return nil, s.refuse("type", codes.InvalidArgument, "resources of type %q are not served", typeURL)
	}
	if current.node == nil {
		if err := s.admit(current.ctx, r.GetNode()); err != nil {
			return nil, err
		}
		current.node = r.GetNode() // Only this stream's goroutine reads it.
	}
	if rejected := r.GetErrorDetail(); rejected != nil {
		s.metrics.rejections.WithLabelValues(label).Inc()
		s.options.Logger.Info("A client rejected what it was sent", "node", current.node.GetId(), "type", label, "why", rejected.GetMessage())
	}
	if typeURL == resource.EndpointType {
		s.streams.watch(current, watch)
	}
	return current.node, nil
}

// admit says whether a client may have a stream.
func (s *Server) admit(ctx context.Context, node *corev3.Node) error {
	id := node.GetId()
	if id == "" || len(id) > maxNodeLength {
		return s.refuse("node", codes.InvalidArgument, "the ID of the node must have 1 to %d bytes; it has %d", maxNodeLength, len(id))
	}
	if s.options.Authorize == nil {
		return nil
	}
	err := s.options.Authorize(ctx, Client{Node: id, Zone: viewOf(node).zone, UserAgent: node.GetUserAgentName()})
	if err == nil {
		return nil
	}
	code := codes.PermissionDenied
	if given, ok := grpcstatus.FromError(err); ok {
		code = given.Code()
	}
	return s.refuse("unauthorized", code, "node %s: %v", id, err)
}

// refuse counts and logs what it returns.
func (s *Server) refuse(reason string, code codes.Code, format string, values ...any) error {
	s.metrics.refusedStreams.WithLabelValues(reason).Inc()
	err := grpcstatus.Errorf(code, format, values...)
	s.options.Logger.V(1).Info("A stream was refused", "reason", reason, "why", err.Error())
	return err
}

// label returns how metrics call a type, "" for one that is not served.
func (s *Server) label(typeURL string) string {
	for _, c := range s.caches {
		if c.url == typeURL {
			return c.label
		}
	}
	return ""
}
