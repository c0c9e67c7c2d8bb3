// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// Metrics asks the API metrics.k8s.io.
type Metrics struct {
	base
	namespace string
	selector  labels.Selector
	pods      client.Reader
	metrics   metricsclient.PodMetricsesGetter
	// last is the end of the newest report of each endpoint: the API gives the same figures for a while.
	last map[string]time.Time
}

// NewMetrics returns a source that asks the API metrics.k8s.io for the pods that selector selects in the policy's namespace. pods lists them for
// their limits: the cache of an informer, or the API server.
func NewMetrics(options Options, selector labels.Selector, pods client.Reader, metrics metricsclient.PodMetricsesGetter) *Metrics {
	namespace, _, _ := strings.Cut(options.Policy, "/")
	return &Metrics{base: newBase(options), namespace: namespace, selector: selector, pods: pods, metrics: metrics, last: map[string]time.Time{}}
}

// Run implements Source.
func (m *Metrics) Run(ctx context.Context) error { return m.poll(ctx, m.ask) }

func (m *Metrics) ask(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, min(m.Interval, maxQueryTime))
	defer cancel()
	reports, message, err := m.read(limited)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		m.tell(err.Error())
	default:
		m.Report(reports...)
		m.tell(message)
	}
}

func (m *Metrics) read(ctx context.Context) ([]loadreport.Report, string, error) {
	usage, err := m.metrics.PodMetricses(m.namespace).List(ctx, metav1.ListOptions{LabelSelector: m.selector.String()})
	if err != nil {
		return nil, "", explain(err)
	}
	var pods corev1.PodList
	if err := m.pods.List(ctx, &pods, client.InNamespace(m.namespace), client.MatchingLabelsSelector{Selector: m.selector}); err != nil {
		return nil, "", fmt.Errorf("listing pods: %w", err)
	}
	byID := make(map[string]*corev1.Pod, len(pods.Items))
	for i := range pods.Items {
		byID[string(pods.Items[i].UID)] = &pods.Items[i]
	}
	byName := make(map[string]*metricsv1beta1.PodMetrics, len(usage.Items))
	for i := range usage.Items {
		byName[usage.Items[i].Name] = &usage.Items[i]
	}
	reports, message := m.reports(byID, byName)
	return reports, message, nil
}

// reports returns those of the endpoints, and what is wrong.
func (m *Metrics) reports(pods map[string]*corev1.Pod, usage map[string]*metricsv1beta1.PodMetrics) ([]loadreport.Report, string) {
	var reports []loadreport.Report
	var unmeasured, unlimited []string
	endpoints, last := m.present(), make(map[string]time.Time)
	for _, e := range endpoints {
		pod := pods[e.ID]
		if pod == nil || usage[pod.Name] == nil {
			unmeasured = append(unmeasured, nameOf(e))
			continue
		}
		used := usage[pod.Name]
		cpu, ok := utilization(pod, used, e.Port)
		if !ok {
			unlimited = append(unlimited, nameOf(e))
			continue
		}
		last[e.ID] = used.Timestamp.Time
		if !used.Timestamp.After(m.last[e.ID]) || pod.CreationTimestamp.After(used.Timestamp.Time) { // Of a pod that had the name before.
			continue
		}
		r := m.report(e.ID, v1alpha1.SourceMetrics, used.Timestamp.Time, used.Window.Duration)
		r.CPU = cpu
		reports = append(reports, r)
	}
	m.last = last
	var parts []string
	if len(unlimited) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d pods have a container without a CPU limit and request: %s", len(unlimited), len(endpoints), some(unlimited)))
	}
	if len(unmeasured) > 0 {
		parts = append(parts, fmt.Sprintf("of %d of %d endpoints metrics.k8s.io says nothing: %s", len(unmeasured), len(endpoints), some(unmeasured)))
	}
	return reports, strings.Join(parts, "; ")
}

func nameOf(e loadreport.Endpoint) string {
	if e.Name != "" {
		return e.Name
	}
	return e.ID
}

// some names the first ones.
func some(names []string) string {
	names = slices.Sorted(slices.Values(names))
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// utilization returns what the containers that serve a port use of the CPU that they may use: of their limits, or of their requests where they
// have none. ok is false where one of them has neither, or is not measured.
func utilization(pod *corev1.Pod, usage *metricsv1beta1.PodMetrics, port int32) (_ float64, ok bool) {
	used := make(map[string]float64, len(usage.Containers))
	for _, c := range usage.Containers {
		used[c.Name] = c.Usage.Cpu().AsApproximateFloat64()
	}
	var total, limit float64
	for _, c := range serving(pod, port) {
		cores := c.Resources.Limits.Cpu().AsApproximateFloat64()
		if cores <= 0 {
			cores = c.Resources.Requests.Cpu().AsApproximateFloat64()
		}
		of, measured := used[c.Name]
		if cores <= 0 || !measured {
			return 0, false
		}
		total, limit = total+of, limit+cores
	}
	return total / limit, limit > 0
}

// serving returns the containers that declare a port, and all of them where none does.
func serving(pod *corev1.Pod, port int32) []corev1.Container {
	var serving []corev1.Container
	for _, c := range pod.Spec.Containers {
		if slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == port }) {
			serving = append(serving, c)
		}
	}
	if len(serving) == 0 {
		return pod.Spec.Containers
	}
	return serving
}

func explain(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the cluster has no API metrics.k8s.io: install metrics-server, or take this source away")
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the balancer may not list pods of metrics.k8s.io: %w", err)
	}
	return fmt.Errorf("asking metrics.k8s.io: %w", err)
}
