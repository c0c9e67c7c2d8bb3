// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/weights"
	"github.com/ringwright/ringwright/internal/xds"
)

// described collects what is registered: the labels of each metric by its name.
type described map[string][]string

var descriptor = regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)

// Register implements prometheus.Registerer.
func (d described) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() {
		c.Describe(descs)
		close(descs)
	}()
	for desc := range descs {
		match := descriptor.FindStringSubmatch(desc.String())
		labels := strings.FieldsFunc(match[2], func(r rune) bool { return r == ',' })
		d[match[1]] = labels
		if _, ok := c.(prometheus.Observer); ok { // A histogram.
			d[match[1]+"_bucket"], d[match[1]+"_sum"], d[match[1]+"_count"] = append(labels, "le"), labels, labels
		}
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (d described) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		_ = d.Register(c)
	}
}

// Unregister implements prometheus.Registerer.
func (d described) Unregister(prometheus.Collector) bool { return false }

// asked is a metric in an expression, with its selector; matcher is a label of that.
var (
	asked   = regexp.MustCompile(`\b(ringwright_[a-z_0-9]+)(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
)

// TestBalancerMetrics: what the alerts and the dashboard of weights ask for, a balancer serves, with the labels by which they select.
func TestBalancerMetrics(t *testing.T) {
	served := described{}
	weights.NewMetrics(served)
	loadreport.NewMetrics(served)
	xds.New(xds.Options{Identifier: "test", Metrics: served}).Close()
	var dashboard dashboard
	if err := json.Unmarshal(read(t, "config", "grafana", "ringwright-weights.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	var expressions []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	for _, alert := range alerts(t, "weight-rules.yaml").Groups[0].Rules {
		expressions = append(expressions, alert.Expr)
	}
	for _, variable := range dashboard.Templating.List {
		expressions = append(expressions, string(variable.Query))
	}
	count := 0
	for _, expression := range expressions {
		for _, ask := range asked.FindAllStringSubmatch(expression, -1) {
			count++
			labels, ok := served[ask[1]]
			if !ok {
				t.Errorf("no balancer serves %s: %s", ask[1], expression)
				continue
			}
			for _, match := range matcher.FindAllStringSubmatch(ask[2], -1) {
				if !slices.Contains(labels, match[1]) {
					t.Errorf("%s has labels %q and not %s: %s", ask[1], labels, match[1], expression)
				}
			}
		}
	}
	if count < 40 {
		t.Errorf("%d metrics are asked for", count)
	}
}
