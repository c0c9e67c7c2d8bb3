// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// metricsAPI speaks metrics.k8s.io over HTTP, as metrics-server does.
type metricsAPI struct {
	items, code, asked atomic.Value
}

func (m *metricsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.asked.Store(r.URL.String())
	w.Header().Set("Content-Type", "application/json")
	if code, _ := m.code.Load().(int); code != 0 {
		reason := map[int]string{404: "NotFound", 403: "Forbidden"}[code]
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"no","code":%d}`, reason, code)
		return
	}
	_, _ = fmt.Fprintf(w, `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[%s]}`, m.items.Load())
}

func podMetrics(name string, at time.Time, containers ...string) string {
	var list []string
	for i := 0; i < len(containers); i += 2 {
		list = append(list, fmt.Sprintf(`{"name":%q,"usage":{"cpu":%q,"memory":"100Mi"}}`, containers[i], containers[i+1]))
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop"},"timestamp":%q,"window":"15.5s","containers":[%s]}`,
		name, at.UTC().Format(time.RFC3339), strings.Join(list, ","))
}

func container(name, limit, request string, ports ...int32) corev1.Container {
	c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}}
	if limit != "" {
		c.Resources.Limits[corev1.ResourceCPU] = resource.MustParse(limit)
	}
	if request != "" {
		c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse(request)
	}
	for _, p := range ports {
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: p})
	}
	return c
}

func pod(n int, containers ...corev1.Container) client.Object {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", n), Namespace: "shop", UID: types.UID(fmt.Sprint("uid-", n)),
			Labels: map[string]string{"app": "checkout"}, CreationTimestamp: metav1.NewTime(zero)},
		Spec: corev1.PodSpec{Containers: containers},
	}
}

type metricsFixture struct {
	*recorder
	*Metrics
	api metricsAPI
}

func newMetricsFixture(t *testing.T, pods ...client.Object) *metricsFixture {
	t.Helper()
	f := &metricsFixture{recorder: newRecorder()}
	server := httptest.NewServer(&f.api)
	t.Cleanup(server.Close)
	c, err := metricsclient.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	o := f.options()
	o.Interval, o.Clock = 15*time.Second, clocktesting.NewFakeClock(zero.Add(time.Hour))
	f.Metrics = NewMetrics(o, labels.SelectorFromSet(labels.Set{"app": "checkout"}), fake.NewClientBuilder().WithObjects(pods...).Build(), c)
	return f
}

func TestMetrics(t *testing.T) {
	at := zero.Add(time.Hour)
	for name, test := range map[string]struct {
		pods    []client.Object
		items   []string
		want    map[string]float64
		message string
	}{
		"limits": {
			[]client.Object{pod(1, container("app", "2", "500m")), pod(2, container("app", "", "500m"))},
			[]string{podMetrics("pod-1", at, "app", "500m"), podMetrics("pod-2", at, "app", "750m")},
			map[string]float64{"uid-1": 0.25, "uid-2": 1.5}, "",
		},
		"the container of the port": {
			[]client.Object{pod(1, container("app", "1", "", 8080), container("proxy", "", "")), pod(2, container("app", "1", "", 9090), container("proxy", "1", ""))},
			[]string{podMetrics("pod-1", at, "app", "500m", "proxy", "100m"), podMetrics("pod-2", at, "app", "500m", "proxy", "100m")},
			map[string]float64{"uid-1": 0.5, "uid-2": 0.3}, "",
		},
		"no limits": {
			[]client.Object{pod(1, container("app", "", "")), pod(2, container("app", "1", ""), container("proxy", "", ""))},
			[]string{podMetrics("pod-1", at, "app", "1"), podMetrics("pod-2", at, "app", "1", "proxy", "1")},
			map[string]float64{}, "2 of 2 pods have a container without a CPU limit and request: pod-1, pod-2",
		},
		"not measured": {
			[]client.Object{pod(1, container("app", "1", "")), pod(2, container("app", "1", ""))},
			[]string{podMetrics("pod-1", at, "app", "1")},
			map[string]float64{"uid-1": 1}, "of 1 of 2 endpoints metrics.k8s.io says nothing: pod-2",
		},
		"another pod of the name": {
			[]client.Object{pod(1, container("app", "1", "")), pod(2, container("app", "1", ""))},
			[]string{podMetrics("pod-1", zero.Add(-time.Second), "app", "1"), podMetrics("pod-2", at, "app", "1")},
			map[string]float64{"uid-2": 1}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newMetricsFixture(t, test.pods...)
			f.api.items.Store(strings.Join(test.items, ","))
			f.SetEndpoints(three[:2])
			f.ask(t.Context())
			got, message := f.take()
			if d := cmp.Diff(test.want, values(got), equal); d != "" {
				t.Error(d)
			}
			if message != test.message {
				t.Errorf("message %q, want %q", message, test.message)
			}
			for _, r := range got {
				if !r.End.Equal(at) || r.Window != 15500*time.Millisecond || r.Source != v1alpha1.SourceMetrics || r.Validate(at) != nil {
					t.Errorf("%+v", r)
				}
			}
			if url := f.api.asked.Load(); url != "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dcheckout" {
				t.Error(url)
			}
			f.ask(t.Context())
			if again, _ := f.take(); len(again) > 0 {
				t.Errorf("the same figures again: %+v", again)
			}
		})
	}
}

func TestMetricsErrors(t *testing.T) {
	f := newMetricsFixture(t, pod(1, container("app", "1", "")))
	f.SetEndpoints(three[:1])
	for code, text := range map[int]string{
		404: "the cluster has no API metrics.k8s.io: install metrics-server, or take this source away",
		403: "the balancer may not list pods of metrics.k8s.io: ",
		503: "asking metrics.k8s.io: ",
	} {
		f.api.code.Store(code)
		f.ask(t.Context())
		if _, message := f.take(); !strings.Contains(message, text) {
			t.Errorf("%d: %q", code, message)
		}
	}
}

// TestMetricsIsPolled runs it, with few and with many pods that have something wrong.
func TestMetricsIsPolled(t *testing.T) {
	f := newMetricsFixture(t)
	f.api.items.Store("")
	clock := clocktesting.NewFakeClock(zero)
	f.Clock = clock
	var many []loadreport.Endpoint
	for i := range 10 {
		many = append(many, loadreport.Endpoint{ID: fmt.Sprint("uid-", i), Name: fmt.Sprint("pod-", i)})
	}
	f.SetEndpoints(many)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	for !clock.HasWaiters() {
		<-time.After(time.Millisecond)
	}
	clock.Step(15 * time.Second)
	f.says(t, "of 10 of 10 endpoints metrics.k8s.io says nothing: pod-0, pod-1, pod-2, ...")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
