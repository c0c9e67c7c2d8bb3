// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/testenv/realprom"
)

// zero is when the data of the real Prometheus begins: five minutes, with a sample every 15 s.
var zero = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// prometheus is one server for all tests of the package, which TestMain ends.
var prometheus struct {
	sync.Once
	address string
	failure error
	stop    func()
}

// openMetrics has three pods that use 0.2, 0.4 and 0.6 cores, gauges of requests in flight by address, and one that has strange values.
func openMetrics() []byte {
	var out strings.Builder
	series := func(labels, name string, at func(i int) float64) {
		for i := range 21 {
			fmt.Fprintf(&out, "%s{%s} %g %d\n", name, labels, at(i), zero.Add(time.Duration(i)*15*time.Second).Unix())
		}
	}
	out.WriteString("# TYPE cpu_seconds counter\n")
	for i := 1; i <= 3; i++ {
		series(fmt.Sprintf(`pod="pod-%d",container="app"`, i), "cpu_seconds_total", func(n int) float64 { return float64(n) * 15 * 0.2 * float64(i) })
	}
	out.WriteString("# TYPE in_flight gauge\n")
	for i := 1; i <= 3; i++ {
		series(fmt.Sprintf(`instance="10.0.0.%d:8080",ip="10.0.0.%d",zone="a"`, i, i), "in_flight", func(int) float64 { return float64(i) })
	}
	out.WriteString("# TYPE strange gauge\n")
	series(`pod="pod-1"`, "strange", func(int) float64 { return -1 })
	series(`pod="pod-2"`, "strange", func(int) float64 { return 2000 })
	series(`pod="pod-3"`, "strange", func(int) float64 { return 0.5 })
	series(`zone="x"`, "strange", func(int) float64 { return 0.5 })
	series(`pod="another"`, "strange", func(int) float64 { return 0.5 })
	out.WriteString("# EOF\n")
	return []byte(out.String())
}

func realPrometheus(t *testing.T) string {
	t.Helper()
	server, tool := realprom.Programs(t)
	prometheus.Do(func() {
		prometheus.address, prometheus.stop, prometheus.failure = realprom.Start(server, tool, openMetrics())
	})
	if prometheus.failure != nil {
		t.Fatal(prometheus.failure)
	}
	return prometheus.address
}

var three = []loadreport.Endpoint{
	{ID: "uid-1", Name: "pod-1", Address: "10.0.0.1", Port: 8080}, {ID: "uid-2", Name: "pod-2", Address: "10.0.0.2", Port: 8080},
	{ID: "uid-3", Name: "pod-3", Address: "10.0.0.3", Port: 8080},
}

func TestPrometheus(t *testing.T) {
	address, now := realPrometheus(t), zero.Add(4*time.Minute)
	for name, test := range map[string]struct {
		metric       v1alpha1.LoadMetric
		query, label string
		endpoints    []loadreport.Endpoint
		want         map[string]float64
		message      string
	}{
		"CPU":             {"", "rate(cpu_seconds_total[1m]) / 0.5", "", three, map[string]float64{"uid-1": 0.4, "uid-2": 0.8, "uid-3": 1.2}, ""},
		"address":         {"InFlight", "in_flight", "ip", three, map[string]float64{"uid-1": 1, "uid-2": 2, "uid-3": 3}, ""},
		"port":            {"Custom", "in_flight * 10", "instance", three, map[string]float64{"uid-1": 10, "uid-2": 20, "uid-3": 30}, ""},
		"others as well":  {"", "in_flight", "ip", three[1:], map[string]float64{"uid-2": 2, "uid-3": 3}, ""},
		"one missing":     {"", `in_flight{ip!="10.0.0.1"}`, "ip", three, map[string]float64{"uid-2": 2, "uid-3": 3}, "1 of 3 endpoints have no series"},
		"strange":         {"", "strange", "", three, map[string]float64{"uid-3": 0.5}, "1 of 5 series have no label pod; 2 of 5 values do not count, such as: a value must be a number from 0 to 1000; got "},
		"strange for CPU": {"InFlight", "strange", "", three, map[string]float64{"uid-2": 2000, "uid-3": 0.5}, "1 of 5 values do not count, such as: a value must be a number from 0 to 1e+09; got -1"},
		"not a number":    {"", "in_flight / 0 * 0", "ip", three, map[string]float64{}, "3 of 3 values do not count, such as: a value must be a number from 0 to 1000; got NaN"},
		"wrong label":     {"", "in_flight", "zone", three, map[string]float64{}, "3 of 3 series have a label zone that names no endpoint"},
		"several":         {"", `label_replace(in_flight, "ip", "10.0.0.1", "", "")`, "ip", three, map[string]float64{}, "2 series too many, such as of 10.0.0.1: aggregate by ip"},
		"two of one":      {"", `label_replace(in_flight, "ip", "10.0.0.1", "ip", "10.0.0.2")`, "ip", three, map[string]float64{"uid-3": 3}, "1 series too many, such as of 10.0.0.1: aggregate by ip"},
		"nothing":         {"", "absent_metric", "", three, map[string]float64{}, "the query gives no series"},
		"a number":        {"", "1", "", three, map[string]float64{}, "the query gives a scalar, and has to give a vector with one element an endpoint"},
		"no query":        {"", "rate(", "", three, map[string]float64{}, "bad_data: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder()
			o := r.options()
			o.Metric, o.Clock, o.Interval = test.metric, clocktesting.NewFakeClock(now), 15*time.Second
			p := NewPrometheus(o, v1alpha1.PrometheusSource{Address: address, Query: test.query, EndpointLabel: test.label,
				Window: &metav1.Duration{Duration: time.Minute}}, nil)
			defer p.pool.Close()
			p.SetEndpoints(test.endpoints)
			p.ask(t.Context())
			got, message := r.take()
			if d := cmp.Diff(test.want, values(got), equal); d != "" {
				t.Error(d)
			}
			if message != test.message && (test.message == "" || !strings.Contains(message, test.message)) {
				t.Errorf("message %q, want %q", message, test.message)
			}
			for _, one := range got {
				if !one.End.Equal(now) || one.Window != time.Minute || one.Source != v1alpha1.SourcePrometheus || one.Validate(now) != nil {
					t.Errorf("%+v", one)
				}
				if value := map[v1alpha1.LoadMetric]float64{"": one.CPU, "InFlight": one.InFlight, "Custom": one.Custom}[test.metric]; value != values(got)[one.Endpoint] {
					t.Errorf("%+v", one)
				}
			}
		})
	}
}

// TestPrometheusIsPolled runs one that comes and goes.
func TestPrometheusIsPolled(t *testing.T) {
	var down sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		down.Lock()
		defer down.Unlock()
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":"pod-1"},"value":[%d,"0.5"]}]}}`, time.Now().Unix())
	}))
	defer server.Close()
	r := newRecorder()
	p := NewPrometheus(r.options(), v1alpha1.PrometheusSource{Address: server.URL, Query: "q"}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	p.SetEndpoints(three[:1])
	if got := r.wait(t, 3); got[2].CPU != 0.5 || !got[2].End.After(got[0].End) {
		t.Fatalf("%+v", got)
	}
	down.Lock() // It does not answer within the interval.
	r.says(t, "no answer within 50ms")
	down.Unlock()
	r.says(t, "")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// noSecrets has none.
type noSecrets struct{ client.Reader }

func (noSecrets) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if _, ok := o.(*corev1.Secret); ok && key == (client.ObjectKey{Namespace: "shop", Name: "prometheus"}) {
		return errors.New("away")
	}
	return errors.New("another one")
}

func TestPrometheusIsProtected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked") }))
	defer server.Close()
	r := newRecorder()
	o := r.options()
	o.AllowLoopback = false
	NewPrometheus(o, v1alpha1.PrometheusSource{Address: server.URL, Query: "q"}, nil).ask(t.Context())
	r.says(t, "127.0.0.1 is an address of this host or link, which is not asked")
	p := NewPrometheus(r.options(), v1alpha1.PrometheusSource{Address: server.URL, Query: "q", Auth: &v1alpha1.GateAuth{SecretName: "prometheus"}}, noSecrets{})
	p.ask(t.Context())
	r.says(t, "reading Secret prometheus: away")
}
