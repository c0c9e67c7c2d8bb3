// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	orcaservicev3 "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/orca"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/pkg/orcareport"
)

// orcaServer is a real gRPC server whose service sends reports as often as it is asked.
type orcaServer struct {
	orcaservicev3.UnimplementedOpenRcaServiceServer
	loadreport.Endpoint
	server *grpc.Server

	mu       sync.Mutex
	report   *orcav3.OrcaLoadReport
	interval *durationpb.Duration
	streams  int
}

func (s *orcaServer) StreamCoreMetrics(request *orcaservicev3.OrcaLoadReportRequest, stream orcaservicev3.OpenRcaService_StreamCoreMetricsServer) error {
	s.mu.Lock()
	s.interval = request.ReportInterval
	s.streams++
	s.mu.Unlock()
	for {
		s.mu.Lock()
		report := s.report
		s.mu.Unlock()
		if err := stream.Send(report); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(request.ReportInterval.AsDuration()):
		}
	}
}

func (s *orcaServer) set(report *orcav3.OrcaLoadReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report = report
}

// listen serves at an address of loopback, "" for any, until the test ends.
func (s *orcaServer) listen(t *testing.T, address string, register func(*grpc.Server)) {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	s.server = server
	register(server)
	s.Address, s.Port = "127.0.0.1", int32(listener.Addr().(*net.TCPAddr).Port)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func newORCAServer(t *testing.T, name string) *orcaServer {
	t.Helper()
	s := &orcaServer{Endpoint: loadreport.Endpoint{ID: "uid-" + name, Name: name}, report: &orcav3.OrcaLoadReport{CpuUtilization: 0.5}}
	s.listen(t, "", s.register)
	return s
}

func (s *orcaServer) register(g *grpc.Server) { orcaservicev3.RegisterOpenRcaServiceServer(g, s) }

// follow runs a source until the test ends.
func follow(t *testing.T, s Source) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestORCA(t *testing.T) {
	r, streams := newRecorder(), NewStreams(10)
	a, b := newORCAServer(t, "a"), newORCAServer(t, "b")
	a.set(&orcav3.OrcaLoadReport{CpuUtilization: 0.25, RpsFractional: 100, Eps: 10, NamedMetrics: map[string]float64{"in_flight": 3, "depth": 7}})
	o := r.options()
	o.CustomMetric = "depth"
	s := NewORCA(o, 0, streams)
	s.SetEndpoints([]loadreport.Endpoint{a.Endpoint})
	follow(t, s)
	got := r.wait(t, 3)[2]
	if got.Policy != "shop/checkout" || got.Endpoint != "uid-a" || got.Source != v1alpha1.SourceORCA || got.CPU != 0.25 || got.InFlight != 3 || got.Custom != 7 ||
		got.Window <= 0 || got.Requests != 100*got.Window.Seconds() || got.Errors != 10*got.Window.Seconds() || got.Validate(time.Now()) != nil {
		t.Fatalf("%+v", got)
	}
	if d := a.interval.AsDuration(); d != 50*time.Millisecond {
		t.Fatalf("it was asked for a report every %s", d)
	}

	// Another endpoint, and the first one goes.
	s.SetEndpoints([]loadreport.Endpoint{b.Endpoint})
	r.until(t, func(all []loadreport.Report, _ string) bool {
		return len(all) > 3 && all[len(all)-1].Endpoint == "uid-b" && all[len(all)-2].Endpoint == "uid-b" && streams.Open() == 1
	})

	// It has no figures, then ones that cannot be true, then good ones on the same stream.
	b.set(&orcav3.OrcaLoadReport{MemUtilization: 1})
	r.says(t, `1 of 1 endpoints: b: the report must be one with cpu_utilization, rps_fractional or named_metrics["in_flight"] above 0, or with "depth" in named_metrics or utilization; got none of them`)
	b.set(&orcav3.OrcaLoadReport{CpuUtilization: -1})
	r.says(t, "1 of 1 endpoints: b: cpu_utilization must be a number from 0 to 1000; got -1")
	b.set(&orcav3.OrcaLoadReport{CpuUtilization: 1})
	r.says(t, "")
	if b.streams != 1 {
		t.Fatalf("%d streams", b.streams)
	}

	// It restarts.
	b.server.Stop()
	r.says(t, "1 of 1 endpoints: b: Unavailable: ")
	b.listen(t, net.JoinHostPort(b.Address, fmt.Sprint(b.Port)), b.register)
	r.says(t, "")
	r.wait(t, 1)
}

func TestORCAThatDoesNotWork(t *testing.T) {
	none := &orcaServer{Endpoint: loadreport.Endpoint{ID: "uid-none", Name: "none"}}
	none.listen(t, "", func(*grpc.Server) {})
	large := newORCAServer(t, "large")
	large.set(&orcav3.OrcaLoadReport{RequestCost: map[string]float64{strings.Repeat("x", 16<<10): 1}})
	good := newORCAServer(t, "good")
	for name, test := range map[string]struct {
		endpoint loadreport.Endpoint
		port     int32
		strict   bool
		text     string
	}{
		"no service": {none.Endpoint, 0, false, "none: it has no service xds.service.orca.v3.OpenRcaService"},
		"too large":  {large.Endpoint, 0, false, "large: ResourceExhausted: grpc: received message larger than max"},
		"a name":     {loadreport.Endpoint{ID: "x", Address: "localhost", Port: good.Port}, 0, false, `x: "localhost" is no IP address`},
		"no port":    {loadreport.Endpoint{ID: "x", Address: "127.0.0.1"}, 0, false, "x: it has no port"},
		"loopback":   {good.Endpoint, 0, true, "127.0.0.1 is an address of this host or link, which is not asked"},
		"metadata":   {loadreport.Endpoint{ID: "x", Address: "169.254.169.254", Port: 80}, 0, false, "169.254.169.254 is an address of this host or link, which is not asked"},
		"other port": {good.Endpoint, none.Port, false, "good: it has no service"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder()
			o := r.options()
			o.AllowLoopback = !test.strict
			s := NewORCA(o, test.port, NewStreams(1))
			s.SetEndpoints([]loadreport.Endpoint{test.endpoint})
			follow(t, s)
			r.says(t, test.text)
			s.SetEndpoints(nil) // What is wrong with it is of no interest any more.
			r.says(t, "")
			if len(r.reports) > 0 {
				t.Errorf("%+v", r.reports)
			}
		})
	}
}

func TestORCAStreamsAreBounded(t *testing.T) {
	r, streams := newRecorder(), NewStreams(2)
	s := NewORCA(r.options(), 0, streams)
	var all []loadreport.Endpoint
	for i := range 5 {
		all = append(all, newORCAServer(t, fmt.Sprint("pod-", i)).Endpoint)
	}
	s.SetEndpoints(all)
	follow(t, s)
	r.says(t, "3 of 5 endpoints: ")
	r.says(t, "no stream is free: the limit of this balancer is 2")
	if streams.Open() != 2 {
		t.Fatalf("%d streams", streams.Open())
	}
	s.SetEndpoints(all[:0])
	r.says(t, "")
	s.SetEndpoints(all[:2])
	r.until(t, func(got []loadreport.Report, message string) bool {
		return message == "" && len(values(got)) == 2
	})
}

// TestORCAOfGRPC asks grpc-go's own service, which reports every 30 s at most: the first report comes at once.
func TestORCAOfGRPC(t *testing.T) {
	recorder := orca.NewServerMetricsRecorder()
	recorder.SetCPUUtilization(0.75)
	s := &orcaServer{Endpoint: loadreport.Endpoint{ID: "uid-a", Name: "a"}}
	s.listen(t, "", func(g *grpc.Server) {
		if err := orca.Register(g, orca.ServiceOptions{ServerMetricsProvider: recorder}); err != nil {
			t.Error(err)
		}
	})
	r := newRecorder()
	source := NewORCA(r.options(), 0, NewStreams(1))
	source.SetEndpoints([]loadreport.Endpoint{s.Endpoint})
	follow(t, source)
	if got := r.wait(t, 1)[0]; got.CPU != 0.75 {
		t.Fatalf("%+v", got)
	}
}

// TestORCAOfReporter asks a server that reports with package orcareport: each report is of its interval.
func TestORCAOfReporter(t *testing.T) {
	reporter := orcareport.New(orcareport.Options{MinInterval: 10 * time.Millisecond})
	release := make(chan struct{})
	defer close(release)
	for range 2 {
		go reporter.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })).
			ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	s := &orcaServer{Endpoint: loadreport.Endpoint{ID: "uid-a", Name: "a"}}
	s.listen(t, "", func(g *grpc.Server) { reporter.Register(g) })
	r := newRecorder()
	source := NewORCA(r.options(), 0, NewStreams(1))
	source.SetEndpoints([]loadreport.Endpoint{s.Endpoint})
	follow(t, source)
	r.until(t, func(all []loadreport.Report, _ string) bool {
		last := len(all) - 1
		return last > 2 && math.Abs(all[last].InFlight-2) < 0.01 && all[last].CPU > 0
	})
}

func TestSlowReportsAreTold(t *testing.T) {
	o := NewORCA(Options{Interval: 5 * time.Second}, 0, NewStreams(1))
	for _, test := range []struct {
		n      int
		window time.Duration
		want   string
	}{
		{2, 30 * time.Second, ""}, {3, 10 * time.Second, ""},
		{3, 30 * time.Second, "a report every 30s, though every 5s was asked for: let its service allow that, or raise the source's interval"},
	} {
		if got := o.slow(test.n, test.window); got != test.want {
			t.Errorf("%d, %s: %q", test.n, test.window, got)
		}
	}
	if o.patience() != 2*time.Minute || NewORCA(Options{Interval: time.Minute}, 0, nil).patience() != 3*time.Minute {
		t.Error("patience")
	}
}

func TestMessagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		b := newBase(r.options())
		b.tell(strings.Repeat("x", 2000))
		b.tell(strings.Repeat("x", 3000)) // The same, as far as is told.
		if len(r.messages) != 1 || len(r.messages[0]) != MaxMessageBytes {
			t.Fatalf("%d messages", len(r.messages))
		}
	})
}
