// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// owners has where policies are: "" is here.
type owners struct {
	mu sync.Mutex
	at map[string]string
}

func (o *owners) Owner(policy string) (address string, local bool, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	address, ok = o.at[policy]
	return address, ok && address == "", ok
}

func (o *owners) move(policy, address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at[policy] = address
}

// replicas take reports; those in away fail.
type replicas struct {
	mu    sync.Mutex
	got   map[string][]loadreport.Report
	calls map[string][]int
	away  map[string]bool
}

func newReplicas() *replicas {
	return &replicas{got: map[string][]loadreport.Report{}, calls: map[string][]int{}, away: map[string]bool{}}
}

func (r *replicas) Forward(_ context.Context, address string, reports []loadreport.Report) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[address] = append(r.calls[address], len(reports))
	if r.away[address] {
		return errors.New("away")
	}
	r.got[address] = append(r.got[address], reports...)
	return nil
}

// asked returns how many reports each call had, by address, and taken what one took.
func (r *replicas) asked() map[string][]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.calls)
}

func (r *replicas) taken(address string) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return numbers(r.got[address])
}

// numbered returns reports of one policy whose CPU is a number.
func numbered(policy string, from, to int) (reports []loadreport.Report) {
	for i := from; i < to; i++ {
		r := pushedReport(policy, "a", time.Second)
		r.End, r.CPU = t0.Add(time.Duration(i)*time.Second), float64(i)
		reports = append(reports, r)
	}
	return reports
}

func numbers(reports []loadreport.Report) (list []int) {
	for _, r := range reports {
		list = append(list, int(r.CPU))
	}
	return list
}

func TestRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, remote := loadreport.NewStore(loadreport.Limits{}, nil), newReplicas()
		store.SetPolicy(loadreport.PolicySpec{Policy: "shop/here", Endpoints: []loadreport.Endpoint{{ID: "a"}},
			Sources: []loadreport.Source{{Type: v1alpha1.SourcePush, StaleAfter: time.Minute}}})
		where := &owners{at: map[string]string{"shop/here": "", "shop/one": "r1:1", "shop/two": "r2:1", "shop/three": "r1:1"}}
		registry := prometheus.NewRegistry()
		metrics := loadreport.NewMetrics(registry)
		r := NewRouter(RouterOptions{Owners: where, Store: store, Forwarder: remote, Queue: 10, Metrics: metrics})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()

		here := numbered("shop/here", 1, 2)
		here[0].End = time.Now()
		r.Route(append(here, append(numbered("shop/one", 0, 2), append(numbered("shop/nowhere", 0, 1), append(numbered("shop/two", 5, 6), numbered("shop/three", 2, 3)...)...)...)...)...)
		if store.Series() != 1 || r.Waiting() != 4 {
			t.Fatalf("%d series, %d wait", store.Series(), r.Waiting())
		}
		<-time.After(500*time.Millisecond + 1)
		synctest.Wait()
		if d := cmp.Diff(map[string][]int{"r1:1": {3}, "r2:1": {1}}, remote.asked()); d != "" || r.Waiting() != 0 {
			t.Fatal(d)
		}

		// r1 is away: its reports wait, the oldest are dropped, and another replica takes them over.
		remote.mu.Lock()
		remote.away["r1:1"] = true
		remote.mu.Unlock()
		r.Route(numbered("shop/one", 10, 25)...)
		<-time.After(time.Minute)
		synctest.Wait()
		if n := len(remote.asked()["r1:1"]); n < 8 || n > 12 { // After 0.5, 1, 2, 4, 8 and then 10 s each.
			t.Fatalf("%d attempts in a minute", n)
		}
		where.move("shop/one", "r2:1")
		<-time.After(11 * time.Second)
		synctest.Wait()
		if d := cmp.Diff([]int{5, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}, remote.taken("r2:1")); d != "" {
			t.Fatal(d)
		}

		// What waits at the end is sent.
		r.Route(numbered("shop/two", 30, 31)...)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := remote.taken("r2:1"); got[len(got)-1] != 30 {
			t.Fatal(got)
		}
		want := map[string]float64{"NoOwner": 1, "Overflow": 5}
		if d := cmp.Diff(want, counters(t, registry)); d != "" {
			t.Fatal(d)
		}
	})
}

// counters returns those of refused reports by reason.
func counters(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			for _, label := range m.Label {
				if label.GetName() == "reason" {
					got[label.GetValue()] += m.Counter.GetValue()
				}
			}
		}
	}
	return got
}

// TestForward sends reports to a real replica.
func TestForward(t *testing.T) {
	store := loadreport.NewStore(loadreport.Limits{}, nil)
	spec := loadreport.PolicySpec{Policy: "shop/checkout", Sources: []loadreport.Source{{Type: v1alpha1.SourcePush, StaleAfter: time.Minute}}}
	var reports []loadreport.Report
	now := time.Now()
	for i := range MaxBatch {
		id := fmt.Sprintf("%0480d", i) // So long that they do not fit into one request.
		spec.Endpoints = append(spec.Endpoints, loadreport.Endpoint{ID: id})
		r := pushedReport("shop/checkout", id, time.Second)
		r.End, r.CPU = now, 0.25
		reports = append(reports, r)
	}
	store.SetPolicy(spec)
	a := authn.New(authn.Options{Reviews: reviews{}})
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(a.Unary), grpc.ChainStreamInterceptor(a.Stream))
	receiver := NewReceiver(ReceiverOptions{Users: []string{"system:serviceaccount:shop:balancer"}, Store: store})
	balancerv1.RegisterReplicasServer(server, replica{Receiver: receiver})
	address, token := serve(t, server), filepath.Join(t.TempDir(), "token")
	f := NewForwarder(ForwarderOptions{TokenFile: token})
	t.Cleanup(func() { _ = f.Close() })

	for _, test := range []struct {
		token string
		want  codes.Code
	}{{"", codes.Unauthenticated}, {"sa-checkout", codes.PermissionDenied}, {"sa-balancer\n", codes.OK}} {
		if test.token != "" {
			if err := os.WriteFile(token, []byte(test.token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Forward(t.Context(), address, reports); status.Code(err) != test.want {
			t.Fatalf("with token %q: %v", test.token, err)
		}
	}
	got := store.Collect("shop/checkout", now, now.Add(-time.Second))
	if len(got) != MaxBatch || got[MaxBatch-1].CPU != 0.25 || got[0].Endpoint != reports[0].Endpoint {
		t.Fatalf("%d readings", len(got))
	}

	client := balancerv1.NewReplicasClient(must(f.Conn(address)))
	response, err := client.Report(t.Context(), &balancerv1.ReportRequest{Reports: []*balancerv1.Report{encode(reports[0]), {Policy: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]uint32{"Replayed": 1, "UnknownPolicy": 1}, response.Refused); d != "" {
		t.Fatal(d)
	}
	_, err = client.Report(t.Context(), &balancerv1.ReportRequest{Reports: make([]*balancerv1.Report, MaxBatch+1)})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "reports must be at most 10000; got 10001") {
		t.Fatal(err)
	}
	if len(f.conns) != 1 {
		t.Fatalf("%d connections", len(f.conns))
	}
}

// replica is as a balancer serves it.
type replica struct {
	balancerv1.UnimplementedReplicasServer
	*Receiver
}

func (r replica) Report(ctx context.Context, request *balancerv1.ReportRequest) (*balancerv1.ReportResponse, error) {
	return r.Receiver.Report(ctx, request)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestWire(t *testing.T) {
	all := pushedReport("p", "e", time.Second)
	all.Reporter, all.CPU, all.InFlight, all.Custom, all.Requests, all.Errors = "r", 0, 1, 2, 3, 4
	for _, want := range []loadreport.Report{all, pushedReport("p", "e", 0)} {
		if d := cmp.Diff(want, decode(encode(want)), equal); d != "" {
			t.Fatal(d)
		}
	}
	got := decode(&balancerv1.Report{})
	if !errors.As(got.Validate(t0), new(*loadreport.Error)) {
		t.Fatalf("%+v", got)
	}
}
