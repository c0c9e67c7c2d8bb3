// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	agentv1 "github.com/ringwright/ringwright/api/agent/v1"
	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// call returns a connection for calls.
func call(t testing.TB, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestGRPC answers in the middle of a migration, as GET and POST do.
func TestGRPC(t *testing.T) {
	dir := t.TempDir()
	stable, candidate := names(t, "one", "two"), names(t, "one", "two")
	split := &routing.Split{Seed: 3, BasisPoints: map[string]int{"*": 5000}}
	publishFile(t, dir, routing.File{Generation: 3, LeaderEpoch: 12, Split: split}, stable, candidate)
	r := start(t, agent.Config{Dir: dir, GRPCListen: "127.0.0.1:0"})
	service := agentv1.NewLookupClient(call(t, r.addresses["grpc"]))
	backends := map[string]*agentv1.Backend{
		"one": {Id: "one", Address: "10.0.0.1:8080", Zone: "z1", Weight: 1}, "two": {Id: "two", Weight: 2},
	}
	state := &agentv1.State{Ring: "cdn/edge", Generation: 3, LeaderEpoch: 12}
	rings := map[bool]*agentv1.Ring{
		false: {Role: agentv1.Role_ROLE_STABLE, Revision: 7, Digest: stable.Digest(), Version: "V2"},
		true:  {Role: agentv1.Role_ROLE_CANDIDATE, Revision: 8, Digest: candidate.Digest(), Version: "V2"},
	}
	view, err := stable.View()
	if err != nil {
		t.Fatal(err)
	}
	var keys [][]byte
	var singles []*agentv1.LookupResponse
	for i := range 20 {
		key := fmt.Appendf(nil, "\xff%d", i)
		hash := ring.Hash(key)
		bucket := uint32(routing.Bucket(hash, split.Seed))
		want := &agentv1.LookupResponse{
			State: state, Ring: rings[bucket < 5000], Answer: &agentv1.Answer{KeyHash: hash, Bucket: &bucket},
		}
		for _, owner := range view.AppendOwners(nil, hash, 2, nil) {
			want.Owners = append(want.Owners, backends[stable.ID(owner)])
		}
		got, err := service.Lookup(t.Context(), &agentv1.LookupRequest{Key: key, N: 2})
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		keys, singles = append(keys, key), append(singles, got)
	}
	batch, err := service.LookupBatch(t.Context(), &agentv1.LookupBatchRequest{Keys: keys, N: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(batch.Rings) != 2 || len(batch.Answers) != len(keys) {
		t.Fatalf("%d rings, %d answers", len(batch.Rings), len(batch.Answers))
	}
	for i, answer := range batch.Answers {
		got := &agentv1.LookupResponse{State: batch.State, Ring: batch.Rings[answer.Ring], Answer: answer.Answer}
		for _, owner := range answer.Owners {
			got.Owners = append(got.Owners, batch.Backends[owner])
		}
		if diff := cmp.Diff(singles[i], got, protocmp.Transform()); diff != "" {
			t.Fatalf("key %d in a batch (-want +got):\n%s", i, diff)
		}
	}
	wantWatched(t, r, service)
	checkProbe(t, r.url("local")+"/metrics", 200, `ringwright_agent_grpc_request_duration_seconds_count{code="OK",method="Lookup"} 20`)
	r.end(t)
}

// wantWatched checks that some of the keys are watched that were asked for one by one and then in a batch, and of those that are asked
// for in batches with a feature.
func wantWatched(t *testing.T, r *running, service agentv1.LookupClient) {
	t.Helper()
	checks := func() float64 {
		stable, _ := r.series(t, "ringwright_agent_owner_checks_total", `role="stable"`)
		candidate, _ := r.series(t, "ringwright_agent_owner_checks_total", `role="candidate"`)
		return stable + candidate
	}
	before := checks()
	if before == 0 {
		t.Error("no key is watched")
	}
	for i := range 2 * 20 {
		key := fmt.Appendf(nil, "\xff%d", i%20)
		if _, err := service.LookupBatch(t.Context(), &agentv1.LookupBatchRequest{Keys: [][]byte{key}, Features: []string{"eu"}}); err != nil {
			t.Fatal(err)
		}
	}
	if after := checks(); after <= before {
		t.Errorf("%v checks before the batches, %v after them", before, after)
	}
}

func TestGRPCProblems(t *testing.T) {
	dir, socket := t.TempDir(), filepath.Join(t.TempDir(), "grpc.sock")
	r := start(t, agent.Config{Dir: dir, Listen: agent.Off, GRPCUnixSocket: socket})
	conn := call(t, "unix:"+socket)
	service, probe := agentv1.NewLookupClient(conn), healthv1.NewHealthClient(conn)
	serving := func(service string) healthv1.HealthCheckResponse_ServingStatus {
		answer, err := probe.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil {
			t.Error(err)
		}
		return answer.GetStatus()
	}
	if got := serving(""); got != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("without a ring: %v", got)
	}
	_, err := service.Lookup(t.Context(), &agentv1.LookupRequest{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no ring is loaded yet") {
		t.Errorf("without a ring: %v", err)
	}
	publish(t, dir, 1, names(t, "one"))
	eventually(t, "the health service", func() bool {
		return serving("") == healthv1.HealthCheckResponse_SERVING && serving("ringwright.agent.v1.Lookup") == healthv1.HealthCheckResponse_SERVING
	})
	long := make([]byte, agent.MaxKeyBytes+1)
	var many [65]string
	for i := range many {
		many[i] = "f"
	}
	for name, row := range map[string]struct {
		request *agentv1.LookupRequest
		code    codes.Code
		want    string
	}{
		"key too long":      {&agentv1.LookupRequest{Key: long}, codes.InvalidArgument, "the key has 8193 bytes: key; the limit is: 8192 bytes"},
		"n too large":       {&agentv1.LookupRequest{N: 65}, codes.InvalidArgument, `n is "65"; the limit is: 1 to 64`},
		"unknown feature":   {&agentv1.LookupRequest{Features: []string{"gpu"}}, codes.InvalidArgument, `features is "gpu"; the limit is: eu, idle`},
		"nameless feature":  {&agentv1.LookupRequest{Features: []string{""}}, codes.InvalidArgument, "a feature has no name"},
		"too many features": {&agentv1.LookupRequest{Features: many[:]}, codes.InvalidArgument, "65 features are named"},
		"no backend":        {&agentv1.LookupRequest{Features: []string{"idle"}}, codes.FailedPrecondition, "no backend may own the key"},
		"the longest key":   {&agentv1.LookupRequest{Key: long[1:]}, codes.OK, ""},
	} {
		_, err := service.Lookup(t.Context(), row.request)
		if status.Code(err) != row.code || !strings.Contains(status.Convert(err).Message(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
		_, err = service.LookupBatch(t.Context(), &agentv1.LookupBatchRequest{
			Keys: [][]byte{nil, row.request.Key}, Features: row.request.Features, N: row.request.N,
		})
		want := strings.Replace(row.want, ": key;", ": keys[1];", 1)
		if status.Code(err) != row.code || !strings.Contains(status.Convert(err).Message(), want) {
			t.Errorf("%s, in a batch: %v", name, err)
		}
	}
	for n, code := range map[int]codes.Code{0: codes.InvalidArgument, 1000: codes.OK, 1001: codes.InvalidArgument} {
		if _, err := service.LookupBatch(t.Context(), &agentv1.LookupBatchRequest{Keys: make([][]byte, n)}); status.Code(err) != code {
			t.Errorf("%d keys: %v", n, err)
		}
	}
	huge := &agentv1.LookupBatchRequest{Keys: [][]byte{make([]byte, agent.MaxBodyBytes)}}
	if _, err := service.LookupBatch(t.Context(), huge); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message over the limit: %v", err)
	}
	r.end(t)
}

// TestGRPCConnectionsAreBounded: a connection beyond the limit is closed at once.
func TestGRPCConnectionsAreBounded(t *testing.T) {
	r := start(t, agent.Config{Dir: t.TempDir(), GRPCListen: "127.0.0.1:0", MaxConnections: 1})
	first, err := net.Dial("tcp", r.addresses["grpc"])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	eventually(t, "the first", func() bool {
		return strings.Contains(get(t, r.url("local")+"/metrics").body, `ringwright_agent_connections{listener="grpc"} 1`)
	})
	_, err = agentv1.NewLookupClient(call(t, r.addresses["grpc"])).Lookup(t.Context(), &agentv1.LookupRequest{})
	if status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), "no ring") {
		t.Errorf("the second: %v", err)
	}
	_ = first.Close()
	eventually(t, "a place", func() bool {
		_, err := agentv1.NewLookupClient(call(t, r.addresses["grpc"])).Lookup(t.Context(), &agentv1.LookupRequest{})
		return err != nil && strings.Contains(err.Error(), "no ring")
	})
	r.end(t)
}
