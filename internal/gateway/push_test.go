// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

const (
	jsonType  = "application/json"
	protoType = "application/x-protobuf"
)

func encoded(t *testing.T, report *orcav3.OrcaLoadReport) string {
	t.Helper()
	body, err := proto.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func (f *fixture) post(token, contentType, query, body string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest("POST", Path+query, strings.NewReader(body)), httptest.NewRecorder()
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", contentType)
	f.Handler().ServeHTTP(w, r)
	return w
}

func TestHTTP(t *testing.T) {
	full := encoded(t, &orcav3.OrcaLoadReport{CpuUtilization: 0.5, RpsFractional: 10, Eps: 1, NamedMetrics: map[string]float64{"in_flight": 3, "depth": 7}})
	cpu := `{"cpu_utilization":0.5}`
	for name, test := range map[string]struct {
		token, contentType, query, body string
		code                            int
		answer                          string
		reason                          loadreport.Reason
	}{
		"protobuf":        {"pod-a", protoType, "?window=2s", full, 200, `{"interval":"5s"}`, ""},
		"JSON":            {"pod-b", jsonType + "; charset=utf-8", "", cpu, 200, `{"interval":"5s"}`, ""},
		"JSON names":      {"pod-b", jsonType, "", `{"cpuUtilization":0.5,"namedMetrics":{"in_flight":1}}`, 200, `{"interval":"5s"}`, ""},
		"no token":        {"", jsonType, "", cpu, 401, "unauthenticated: no token", ""},
		"no pod":          {"sa-x", jsonType, "", cpu, 401, "the token is bound to no pod", loadreport.Unauthenticated},
		"bad token":       {"x", jsonType, "", cpu, 401, "the API server does not accept the token", ""},
		"no policy":       {"pod-c", jsonType, "", cpu, 404, "no WeightPolicy with the source Push balances the pod shop/name-of-c", loadreport.UnknownEndpoint},
		"type":            {"pod-b", "text/plain", "", cpu, 415, `Content-Type must be application/json or application/x-protobuf; got \"text/plain\"`, loadreport.Malformed},
		"no type":         {"pod-b", "", "", cpu, 415, "Content-Type must be", loadreport.Malformed},
		"largest":         {"pod-b", jsonType, "", cpu + strings.Repeat(" ", 16<<10-len(cpu)), 200, "", ""},
		"too large":       {"pod-b", jsonType, "", cpu + strings.Repeat(" ", 16<<10-len(cpu)+1), 413, "the body must have at most 16384 bytes; got more", loadreport.TooLarge},
		"not JSON":        {"pod-b", jsonType, "", `cpu`, 400, "the report is no OrcaLoadReport in JSON: syntax error (line 1:1): invalid value cpu", loadreport.Malformed},
		"unknown field":   {"pod-b", jsonType, "", `{"cpu":1}`, 400, `unknown field \"cpu\"`, loadreport.Malformed},
		"twice":           {"pod-b", jsonType, "", `{"eps":1,"eps":2}`, 400, `duplicate field \"eps\"`, loadreport.Malformed},
		"text":            {"pod-b", jsonType, "", `{"eps":"much"}`, 400, `invalid value for double field eps: \"much\"`, loadreport.Malformed},
		"not protobuf":    {"pod-b", protoType, "", "\xff\xff", 400, "the report is no encoded xds.data.orca.v3.OrcaLoadReport", loadreport.Malformed},
		"NaN":             {"pod-b", jsonType, "", `{"cpu_utilization":"NaN"}`, 400, "cpu_utilization must be a number from 0 to 1000; got NaN", loadreport.NotFinite},
		"infinite":        {"pod-b", jsonType, "", `{"named_metrics":{"in_flight":"Infinity"}}`, 400, `named_metrics[\"in_flight\"] must be a number from 0 to 1e+09; got +Inf`, loadreport.NotFinite},
		"negative":        {"pod-b", jsonType, "", `{"cpu_utilization":-1}`, 400, "got -1", loadreport.Negative},
		"percent":         {"pod-b", jsonType, "", `{"cpu_utilization":2000}`, 400, "got 2000", loadreport.TooLarge},
		"nothing":         {"pod-b", jsonType, "", `{}`, 400, `the report must be one with cpu_utilization, rps_fractional or named_metrics[\"in_flight\"] above 0; got none of them`, loadreport.NoFigure},
		"nothing for it":  {"pod-a", jsonType, "", `{"named_metrics":{"x":1}}`, 400, `or with \"depth\" in named_metrics or utilization; got none of them`, loadreport.NoFigure},
		"window":          {"pod-b", jsonType, "?window=1h", cpu, 200, "", ""},
		"window 0":        {"pod-b", jsonType, "?window=0s", cpu, 400, "window must be a duration such as 5s, more than 0s and at most 1h0m0s; got 0s", loadreport.BadWindow},
		"window too long": {"pod-b", jsonType, "?window=1h1ns", cpu, 400, "got 1h0m0.000000001s", loadreport.BadWindow},
		"window negative": {"pod-b", jsonType, "?window=-1s", cpu, 400, "got -1s", loadreport.BadWindow},
		"no window":       {"pod-b", jsonType, "?window=5", cpu, 400, `got \"5\"`, loadreport.BadWindow},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			w := f.post(test.token, test.contentType, test.query, test.body)
			if w.Code != test.code || !strings.Contains(w.Body.String(), test.answer) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, test.code, test.answer)
			}
			if (w.Code == 200) != (len(f.sink.reports) > 0) {
				t.Errorf("%d reports", len(f.sink.reports))
			}
			f.refused(t, test.reason)
		})
	}
	if w := httptest.NewRecorder(); true {
		newFixture().Handler().ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Error(w.Code)
		}
	}
}

func TestWhatIsReported(t *testing.T) {
	f := newFixture()
	f.post("pod-a", jsonType, "?window=2s", `{"cpu_utilization":0.5,"rps_fractional":10,"eps":1,"named_metrics":{"in_flight":3,"depth":7}}`)
	one, two := pushedReport("shop/checkout", "a", 2*time.Second), pushedReport("shop/queue", "a", 2*time.Second)
	one.CPU, one.InFlight, one.Requests, one.Errors = 0.5, 3, 20, 2
	two.CPU, two.InFlight, two.Requests, two.Errors, two.Custom = 0.5, 3, 20, 2, 7
	if d := cmp.Diff([]loadreport.Report{one, two}, f.sink.reports, equal); d != "" {
		t.Fatal(d)
	}
	// Only one of the policies has this figure.
	f.sink.reports = nil
	f.post("pod-a", jsonType, "?window=2s", `{"utilization":{"depth":0.5}}`)
	two = pushedReport("shop/queue", "a", 2*time.Second)
	two.Custom = 0.5
	if d := cmp.Diff([]loadreport.Report{two}, f.sink.reports, equal); d != "" {
		t.Fatal(d)
	}
}

// TestWindowSinceTheLast has a pod that does not say what its reports cover.
func TestWindowSinceTheLast(t *testing.T) {
	f := newFixture()
	for _, test := range []struct{ after, want time.Duration }{
		{0, 5 * time.Second}, {7 * time.Second, 7 * time.Second}, {2 * time.Hour, 5 * time.Second},
	} {
		f.clock.SetTime(f.clock.Now().Add(test.after))
		if w := f.post("pod-b", jsonType, "", `{"cpu_utilization":1}`); w.Code != 200 {
			t.Fatal(w.Body)
		}
		f.post("pod-b", jsonType, "", `{}`) // What is refused was no report.
		if last := f.sink.reports[len(f.sink.reports)-1]; last.Window != test.want {
			t.Fatalf("%s, want %s", last.Window, test.want)
		}
	}
}

func TestRate(t *testing.T) {
	f := newFixture()
	codes := func(n int) (list []int) {
		for range n {
			list = append(list, f.post("pod-b", jsonType, "", `{"cpu_utilization":1}`).Code)
		}
		return list
	}
	if d := cmp.Diff([]int{200, 200, 200, 200, 200, 429, 429}, codes(7)); d != "" {
		t.Fatal(d)
	}
	if w := f.post("pod-b", jsonType, "", `{}`); w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "the pod may send 2 reports a second, and 5 at once") {
		t.Fatal(w.Header(), w.Body)
	}
	if w := f.post("pod-a", jsonType, "", `{"cpu_utilization":1}`); w.Code != 200 { // Others are not held up.
		t.Fatal(w.Body)
	}
	f.clock.SetTime(f.clock.Now().Add(500 * time.Millisecond))
	if d := cmp.Diff([]int{200, 429}, codes(2)); d != "" {
		t.Fatal(d)
	}
}

// TestPodsAreBounded has a million pods.
func TestPodsAreBounded(t *testing.T) {
	if raceDetector {
		t.Skip("it takes minutes")
	}
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	pods := newPodTable(1000, 2, 5)
	before := heap()
	for i := range 1_000_000 {
		pods.allow(fmt.Sprint("0c4f7a52-", i), t0)
	}
	if grown := heap() - before; grown > 1<<20 || pods.pods.Len() != 1000 {
		t.Fatalf("the heap grew by %d bytes, %d pods", grown, pods.pods.Len())
	}
}

func TestGRPC(t *testing.T) {
	cpu := &orcav3.OrcaLoadReport{CpuUtilization: 0.5}
	large := &orcav3.OrcaLoadReport{RequestCost: map[string]float64{strings.Repeat("x", 16<<10): 1}}
	for name, test := range map[string]struct {
		token  string
		report *orcav3.OrcaLoadReport
		window *durationpb.Duration
		code   codes.Code
		text   string
	}{
		"good":      {"pod-b", cpu, durationpb.New(time.Second), codes.OK, ""},
		"no window": {"pod-b", cpu, nil, codes.OK, ""},
		"no token":  {"", cpu, nil, codes.Unauthenticated, "no token"},
		"no pod":    {"sa-x", cpu, nil, codes.Unauthenticated, "bound to no pod"},
		"no policy": {"pod-c", cpu, nil, codes.NotFound, "no WeightPolicy"},
		"window 0":  {"pod-b", cpu, durationpb.New(0), codes.InvalidArgument, "window must be"},
		"negative":  {"pod-b", &orcav3.OrcaLoadReport{CpuUtilization: -2}, nil, codes.InvalidArgument, "cpu_utilization must be a number from 0 to 1000; got -2"},
		"too large": {"pod-b", large, nil, codes.InvalidArgument, "report must have at most 16384 bytes; got 16"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			ctx := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+test.token))
			response, err := f.client(t).Push(ctx, &balancerv1.PushRequest{Report: []byte(encoded(t, test.report)), Window: test.window})
			if status.Code(err) != test.code || err != nil && !strings.Contains(err.Error(), test.text) {
				t.Fatal(err)
			}
			if err == nil && (response.Interval.AsDuration() != 5*time.Second || len(f.sink.reports) != 1 || f.sink.reports[0].CPU != 0.5) {
				t.Fatalf("%v, %v", response, f.sink.reports)
			}
		})
	}
	f := newFixture()
	client, ctx := f.client(t), metadata.NewOutgoingContext(t.Context(), metadata.Pairs("authorization", "Bearer pod-b"))
	var err error
	for range 6 {
		_, err = client.Push(ctx, &balancerv1.PushRequest{Report: []byte(encoded(t, cpu))})
	}
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 || s.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration() != 500*time.Millisecond {
		t.Fatal(s, s.Details())
	}
}

// client returns one of a real server.
func (f *fixture) client(t *testing.T) balancerv1.LoadReportsClient {
	server := grpc.NewServer()
	f.Register(server)
	return balancerv1.NewLoadReportsClient(dial(t, server))
}

// dial serves on loopback until the test ends, and returns a connection.
func dial(t *testing.T, server *grpc.Server) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(serve(t, server), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// serve serves on loopback until the test ends, and returns where.
func serve(t *testing.T, server *grpc.Server) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}
