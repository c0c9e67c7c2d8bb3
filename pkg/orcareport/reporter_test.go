// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

var method = &grpc.UnaryServerInfo{FullMethod: "/shop.Checkout/Pay"}

// call is a call that takes a time and returns a code.
func (r *Reporter) call(ctx context.Context, d time.Duration, code codes.Code) {
	_, _ = r.Unary(ctx, nil, method, func(context.Context, any) (any, error) {
		<-time.After(d)
		return nil, status.Error(code, "")
	})
}

// TestFigures has calls of known times, under a fake clock.
func TestFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used := time.Duration(0)
		r := New(Options{NoTrailers: true, CPU: func() (time.Duration, float64, bool) { return used, 2, true }, Named: func() map[string]float64 {
			return map[string]float64{"queue": 7, InFlight: -1}
		}})
		for i := range 10 {
			go r.call(t.Context(), time.Second, map[bool]codes.Code{true: codes.Internal, false: codes.NotFound}[i < 2])
		}
		go r.call(t.Context(), 10*time.Second, codes.OK) // In flight when it is looked at.
		<-time.After(4 * time.Second)
		used = 6 * time.Second
		report, window := r.Report()
		if window != 4*time.Second || !near(report.CpuUtilization, 0.75) || !near(report.NamedMetrics[InFlight], (10.*1+4)/4) ||
			!near(report.RpsFractional, 2.5) || !near(report.Eps, 0.5) || report.NamedMetrics["queue"] != 7 {
			t.Fatalf("%s: %v", window, report)
		}
		// Reports cover five seconds at least, as far as there are totals of that time, and ten at most.
		<-time.After(4 * time.Second)
		report, window = r.Report()
		if window != 8*time.Second || !near(report.CpuUtilization, 0.375) || !near(report.NamedMetrics[InFlight], (10.+8)/8) || !near(report.RpsFractional, 10./8) {
			t.Fatalf("%s: %v", window, report)
		}
		<-time.After(4 * time.Second)
		report, window = r.Report()
		if window != 8*time.Second || report.CpuUtilization != leastCPU || !near(report.NamedMetrics[InFlight], (4.+2)/8) || !near(report.RpsFractional, 1./8) {
			t.Fatalf("%s: %v", window, report)
		}
		<-time.After(time.Hour) // Nobody asked: it is of all that time, and the next one of a short one again.
		if _, window = r.Report(); window != time.Hour {
			t.Fatal(window)
		}
		<-time.After(time.Second)
		if _, window = r.Report(); window != time.Second {
			t.Fatal(window)
		}
	})
}

func TestWhatCounts(t *testing.T) {
	errorCodes := map[codes.Code]bool{codes.Unknown: true, codes.DeadlineExceeded: true, codes.ResourceExhausted: true, codes.Unimplemented: true,
		codes.Internal: true, codes.Unavailable: true, codes.DataLoss: true}
	for code := range codes.Code(17) {
		if IsError(code) != errorCodes[code] {
			t.Error(code)
		}
	}
	for code, want := range map[int]bool{200: false, 404: false, 429: true, 499: false, 500: true, 503: true, 599: true, 600: false} {
		if IsHTTPError(code) != want {
			t.Error(code)
		}
	}
	r := New(Options{})
	_, _ = r.Unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/grpc.health.v1.Health/Check"}, func(context.Context, any) (any, error) { return nil, nil })
	_ = r.Stream(nil, nil, &grpc.StreamServerInfo{FullMethod: "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"}, func(any, grpc.ServerStream) error { return nil })
	if c := r.counter.sum(0); c != (count{}) {
		t.Errorf("%+v", c)
	}
	func() { // A handler that panics has failed, and is not in flight any more.
		defer func() { _ = recover() }()
		_, _ = r.Unary(t.Context(), nil, method, func(context.Context, any) (any, error) { panic("no") })
	}()
	if c, later := r.counter.sum(r.now()), r.counter.sum(r.now()+1e9); c.requests != 1 || c.errors != 1 || later.area != c.area {
		t.Errorf("%+v, then %+v", c, later)
	}
}

func TestHTTP(t *testing.T) {
	r := New(Options{})
	for name, test := range map[string]struct {
		do     func(w http.ResponseWriter)
		failed bool
	}{
		"nothing":  {func(http.ResponseWriter) {}, false},
		"a body":   {func(w http.ResponseWriter) { _, _ = w.Write([]byte("x")) }, false},
		"404":      {func(w http.ResponseWriter) { w.WriteHeader(404) }, false},
		"500":      {func(w http.ResponseWriter) { w.WriteHeader(500) }, true},
		"early":    {func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(503) }, true},
		"a panic":  {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, true},
		"flushing": {func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.counter.sum(r.now())
			func() {
				defer func() { _ = recover() }()
				r.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { test.do(w) })).
					ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			}()
			after := r.counter.sum(r.now())
			if after.requests-before.requests != 1 || (after.errors > before.errors) != test.failed {
				t.Errorf("%+v, before %+v", after, before)
			}
		})
	}
}

// TestCPU reads the files of a cgroup in its places.
func TestCPU(t *testing.T) {
	write := func(t *testing.T, files map[string]string) string {
		root := t.TempDir()
		for name, content := range files {
			path := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		return root
	}
	const stat = "usage_usec 2500000\nuser_usec 1\nsystem_usec 2\n"
	for name, test := range map[string]struct {
		files map[string]string
		cores float64
		own   bool
	}{
		"a container":          {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.stat": stat, "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5, true},
		"a part of the host's": {map[string]string{"proc/self/cgroup": "0::/kubepods/pod1/c1\n", "sys/fs/cgroup/cpu.stat": stat, "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0.5, true},
		"the host's tree": {map[string]string{"proc/self/cgroup": "1:name=systemd:/x\n0::/a/b\n", "sys/fs/cgroup/cpu.stat": "usage_usec 9\n",
			"sys/fs/cgroup/a/b/cpu.stat": stat, "sys/fs/cgroup/a/b/cpu.max": "200000 100000\n"}, 2, true},
		"no limit":    {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.stat": stat, "sys/fs/cgroup/cpu.max": "max 100000\n"}, 0, false},
		"the root":    {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.stat": stat}, 0, false},
		"version 1":   {map[string]string{"proc/self/cgroup": "4:cpu:/\n"}, 0, false},
		"no cgroups":  {nil, 0, false},
		"strange":     {map[string]string{"proc/self/cgroup": "0::/../x\n", "sys/fs/cgroup/cpu.stat": stat, "sys/fs/cgroup/cpu.max": "many 0\n"}, 0, false},
		"period of 0": {map[string]string{"sys/fs/cgroup/cpu.stat": stat, "sys/fs/cgroup/cpu.max": "1 0\n"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			used, cores, ok := newCPU(write(t, test.files)).read()
			if test.own {
				if used != 2500*time.Millisecond || cores != test.cores || !ok {
					t.Errorf("%s of %g cores", used, cores)
				}
				return
			}
			if used == 2500*time.Millisecond || cores != float64(runtime.GOMAXPROCS(0)) || !ok {
				t.Errorf("%s of %g cores, not those of the process", used, cores)
			}
		})
	}
	used, cores, ok := newCPU("/").read()
	for i := 0; i < 1<<20; i++ { // Some work.
		_ = fmt.Sprint(i)
	}
	if later, _, _ := newCPU("/").read(); later <= used || cores <= 0 || !ok {
		t.Errorf("%s after %s of %g cores", later, used, cores)
	}
}

// TestNoAllocation of what each call costs.
func TestNoAllocation(t *testing.T) {
	r := New(Options{NoTrailers: true})
	next := func(context.Context, any) (any, error) { return nil, nil }
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = r.Unary(ctx, nil, method, next) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkUnary(b *testing.B) {
	next := func(context.Context, any) (any, error) { return nil, nil }
	for name, options := range map[string]Options{"counted": {NoTrailers: true}, "trailers": {}} {
		b.Run(name, func(b *testing.B) {
			r := New(options)
			b.ReportAllocs()
			ctx := grpc.NewContextWithServerTransportStream(b.Context(), nothing{})
			for b.Loop() {
				_, _ = r.Unary(ctx, nil, method, next)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			r := New(options)
			ctx := grpc.NewContextWithServerTransportStream(b.Context(), nothing{})
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = r.Unary(ctx, nil, method, next)
				}
			})
		})
	}
}

// nothing takes trailers for nobody.
type nothing struct{ grpc.ServerTransportStream }

func (nothing) SetTrailer(metadata.MD) error { return nil }
