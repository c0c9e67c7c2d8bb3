// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/movement"
	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/internal/ringcache"
	"github.com/ringwright/ringwright/internal/telemetry"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/ringclient/clientmetrics"
)

// metricFamilies are the metrics of a scrape by their names.
type metricFamilies map[string]*dto.MetricFamily

// scraper returns a function that scrapes the operator as Prometheus does.
func scraper(ctx context.Context, namespace string) func(Gomega) metricFamilies {
	GinkgoHelper()
	bearer := token(ctx, namespace, "scraper")
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ringwright-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "scraper"}},
	})).To(Succeed())
	return func(g Gomega) metricFamilies {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+operator.metrics+"/metrics", nil)
		g.Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Authorization", "Bearer "+bearer)
		response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}).Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		g.Expect(response.StatusCode).To(Equal(http.StatusOK))
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return families
	}
}

// value adds up a family of HashRings over those metrics that have all of the labels, which are given as name=value. It is -1
// where there are none.
func (m metricFamilies) value(name string, labels ...string) float64 {
	sum, found := 0.0, false
	for _, metric := range m["ringwright_hashring_"+name].GetMetric() {
		has := map[string]bool{}
		for _, label := range metric.GetLabel() {
			has[label.GetName()+"="+label.GetValue()] = true
		}
		all := true
		for _, label := range labels {
			all = all && has[label]
		}
		if all {
			found = true
			sum += metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	if !found {
		return -1
	}
	return sum
}

var _ = Describe("metrics", func() {
	It("count what happens and show what is", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		scrape := scraper(ctx, namespace)
		var before metricFamilies
		Eventually(func(g Gomega) {
			before = scrape(g)
			g.Expect(before.value("publications_total", "result=published")).To(BeNumerically(">=", 0), "the operator leads")
		}).Should(Succeed())

		unknown := func(n int) []v1alpha1.Backend { // No other test has them, so the operator has not built a ring of them yet.
			list := backends(n)
			for i := range list {
				list[i].Zone = "measured"
			}
			return list
		}
		r := newRing(namespace, "measured", 0)
		r.Spec.Backends = unknown(4)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = unknown(5) })
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(admin.Delete(ctx, getConfigMap(ctx, namespace, "measured-b"))).To(Succeed())

		ring := []string{"namespace=" + namespace, "name=measured"}
		Eventually(func(g Gomega) {
			now := scrape(g)
			grown := func(name string, labels ...string) float64 {
				return now.value(name, labels...) - before.value(name, labels...)
			}
			g.Expect(grown("publications_total", "result=published")).To(Equal(2.0))
			g.Expect(grown("publications_total", "result=failed")).To(Equal(0.0))
			g.Expect(grown("publish_latency_seconds")).To(Equal(2.0))
			g.Expect(grown("movement_ratio")).To(Equal(1.0), "the first ring moves nothing")
			g.Expect(grown("restores_total")).To(Equal(1.0))
			g.Expect(grown("builds_total")).To(BeNumerically(">=", 2))
			g.Expect(grown("builds_avoided_total")).To(BeNumerically(">=", 1))
			g.Expect(now.value("moved_ratio_total", ring...)).To(And(BeNumerically(">", 0.1), BeNumerically("<", 0.3)), "about a fifth")
			g.Expect(now.value("ready", append(ring, "reason=RingPublished")...)).To(Equal(1.0))
			g.Expect(now.value("points", ring...)).To(Equal(800.0))
			g.Expect(now.value("revision", ring...)).To(Equal(2.0))
			g.Expect(now.value("backends", append(ring, "state=placed")...)).To(Equal(5.0))
			g.Expect(now.value("held", ring...)).To(Equal(-1.0))
		}).Should(Succeed())

		Expect(admin.Delete(ctx, r)).To(Succeed())
		Eventually(func(g Gomega) {
			for name, family := range scrape(g) {
				for _, metric := range family.GetMetric() {
					g.Expect(metric.String()).NotTo(ContainSubstring(namespace), name)
				}
			}
		}).Should(Succeed())
	})

	It("are all there that alerts and dashboard ask for", func(ctx SpecContext) {
		served := map[string]bool{"up": true} // Prometheus makes it.
		var families metricFamilies
		namespace := newNamespace(ctx)
		scrape := scraper(ctx, namespace)
		r := newRing(namespace, "seen", 3) // Some are there only when something was reconciled.
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		Eventually(func(g Gomega) {
			families = scrape(g)
			g.Expect(families.value("builds_total")).To(BeNumerically(">=", 0), "the operator leads")
		}).Should(Succeed())
		for name, family := range families {
			served[name] = true
			if family.GetType() == dto.MetricType_HISTOGRAM {
				served[name+"_bucket"], served[name+"_sum"], served[name+"_count"] = true, true, true
			}
		}
		for _, name := range append(describedMetrics(), agentMetrics()...) { // Some are there only while a ring is held, for instance.
			served[name] = true
		}
		asked := regexp.MustCompile(`\b(up|(ringwright|leader_election|controller_runtime|workqueue|rest_client|process|go)_[a-z_]+)\b`)
		for _, path := range []string{
			"prometheus/rules.yaml", "prometheus/migration-rules.yaml", "grafana/ringwright.json", "grafana/ringwright-migration.json",
		} {
			text, err := os.ReadFile(filepath.Join(root, "config", path))
			Expect(err).NotTo(HaveOccurred())
			var content any
			Expect(yaml.Unmarshal(text, &content)).To(Succeed()) // JSON is YAML.
			count := 0
			for _, expression := range expressions(content) {
				for _, name := range asked.FindAllString(expression, -1) {
					Expect(served).To(HaveKey(name), "%s asks for it", path)
					count++
				}
			}
			Expect(count).To(BeNumerically(">=", 10), path)
		}
	})
})

// expressions returns what is asked of Prometheus anywhere in content.
func expressions(content any) []string {
	var list []string
	switch content := content.(type) {
	case []any:
		for _, item := range content {
			list = append(list, expressions(item)...)
		}
	case map[string]any:
		for key, value := range content {
			if text, ok := value.(string); ok && (key == "expr" || key == "query") {
				list = append(list, text)
			}
			list = append(list, expressions(value)...)
		}
	}
	return list
}

// describedMetrics returns the names that the metrics of HashRings and RingMigrations can have.
func describedMetrics() []string {
	names := []string{"ringwright_migration_gate_result", "ringwright_migration_gate_value"} // Their collector is that of package gate.
	names = append(names, namesOf(telemetry.NewMigrations(nil, prometheus.NewRegistry()))...)
	return append(names, namesOf(telemetry.New(nil, ringcache.New(1), prometheus.NewRegistry()))...)
}

// agentMetrics are the names of what agents serve of their rings, of keys that move and of their proxy.
func agentMetrics() []string {
	config := proxy.DefaultConfig()
	config.CacheStatusHeader = "X-Cache-Status"
	p, err := proxy.New(&ringclient.Client{}, config)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = p.Close() }()
	names := []string{ // The first is of the agent itself, the others are parts of summaries and histograms.
		"ringwright_agent_startup_seconds", "ringwright_client_load_duration_seconds_sum", "ringwright_client_load_duration_seconds_count",
		"ringwright_proxy_first_byte_seconds_bucket",
	}
	for _, collector := range []prometheus.Collector{clientmetrics.NewCollector(nil), movement.New(), p} {
		names = append(names, namesOf(collector)...)
	}
	return names
}

// namesOf returns the names of what a collector can serve.
func namesOf(collector prometheus.Collector) []string {
	descs := make(chan *prometheus.Desc)
	go func() {
		collector.Describe(descs)
		close(descs)
	}()
	var names []string
	for desc := range descs {
		var name string
		_, err := fmt.Sscanf(desc.String(), "Desc{fqName: %q", &name)
		Expect(err).NotTo(HaveOccurred())
		names = append(names, name)
	}
	return names
}
