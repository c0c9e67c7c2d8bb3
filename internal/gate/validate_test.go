// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

func TestValidate(t *testing.T) {
	good := map[string]func(g *v1alpha1.MigrationGate){
		"plain":                   func(*v1alpha1.MigrationGate) {},
		"baseline by $ring":       func(g *v1alpha1.MigrationGate) { g.Prometheus.Query, g.FailWhen = "q$ring", "value > baseline" },
		"baseline of its own":     func(g *v1alpha1.MigrationGate) { g.Prometheus.BaselineQuery, g.FailWhen = "q", "value > baseline" },
		"samples":                 func(g *v1alpha1.MigrationGate) { g.Prometheus.SamplesQuery, g.MinSamples = "q", 5 },
		"https with a path":       func(g *v1alpha1.MigrationGate) { g.Prometheus.Address = "https://thanos.example.com/prefix/" },
		"an address of version 6": func(g *v1alpha1.MigrationGate) { g.Prometheus.Address = "http://[2001:db8::1]:9090" },
	}
	for name, change := range good {
		g := asked("http://prometheus.monitoring:9090", "q")
		if change(&g); Validate(g) != nil {
			t.Errorf("%s: %v", name, Validate(g))
		}
	}
	object := func(g *v1alpha1.MigrationGate) {
		*g = v1alpha1.MigrationGate{Name: "errors", Object: &v1alpha1.ObjectGate{APIVersion: "apps/v1", Kind: "Deployment", Name: "edge", Condition: "Available"}}
	}
	consumers := func(g *v1alpha1.MigrationGate) {
		*g = v1alpha1.MigrationGate{Name: "errors", Consumers: &v1alpha1.ConsumersGate{MaxErrorRatio: "1%", MaxFailoverRatio: "1%"}}
	}
	for want, change := range map[string]func(g *v1alpha1.MigrationGate){
		`gates[errors].failWhen: Invalid value: "valu > 1": at character 1: undeclared reference to 'valu'`:                       func(g *v1alpha1.MigrationGate) { g.FailWhen = "valu > 1" },
		`gates[errors].passWhen: Invalid value: "value": is of type double, and has to be true or false`:                          func(g *v1alpha1.MigrationGate) { g.PassWhen = "value" },
		`gates[errors].failWhen: Required value: at least one of failWhen and passWhen must be set`:                               func(g *v1alpha1.MigrationGate) { g.FailWhen, g.PassWhen = "", "" },
		`gates[errors].failWhen: Invalid value: "value > baseline": there is no baseline`:                                         func(g *v1alpha1.MigrationGate) { g.FailWhen = "value > baseline" },
		`gates[errors].passWhen: Invalid value: "samples > 1": there are no samples`:                                              func(g *v1alpha1.MigrationGate) { g.PassWhen = "samples > 1" },
		`gates[errors].prometheus.samplesQuery: Required value: minSamples needs it`:                                              func(g *v1alpha1.MigrationGate) { g.MinSamples = 1 },
		`gates[errors].prometheus.query: Invalid value: "q[$__rate_interval]": $__rate_interval is a variable of Grafana`:         func(g *v1alpha1.MigrationGate) { g.Prometheus.Query = "q[$__rate_interval]" },
		`gates[errors].prometheus.baselineQuery: Invalid value: "$x": there is no variable $x`:                                    func(g *v1alpha1.MigrationGate) { g.Prometheus.BaselineQuery = "$x" },
		`gates[errors].prometheus.samplesQuery: Invalid value: "$x": there is no variable $x`:                                     func(g *v1alpha1.MigrationGate) { g.Prometheus.SamplesQuery = "$x" },
		`gates[errors].prometheus.query: Required value`:                                                                          func(g *v1alpha1.MigrationGate) { g.Prometheus.Query = " " },
		`gates[errors].prometheus.address: Invalid value: "ftp://a": must be a URL of http or https`:                              func(g *v1alpha1.MigrationGate) { g.Prometheus.Address = "ftp://a" },
		`gates[errors].prometheus.address: Invalid value: "http://": must have a host`:                                            func(g *v1alpha1.MigrationGate) { g.Prometheus.Address = "http://" },
		`gates[errors].prometheus.address: Invalid value: "http://me:xxxxx@a": must not have a user and password`:                 func(g *v1alpha1.MigrationGate) { g.Prometheus.Address = "http://me:secret@a" },
		`gates[errors].prometheus.address: Invalid value: "http://a?b=c": must not have a query`:                                  func(g *v1alpha1.MigrationGate) { g.Prometheus.Address = "http://a?b=c" },
		`gates[errors].prometheus.window: Invalid value: "0s": must be at least 1s`:                                               func(g *v1alpha1.MigrationGate) { g.Prometheus.Window = &metav1.Duration{} },
		`gates[errors].prometheus.timeout: Invalid value: "0s": must be above 0s`:                                                 func(g *v1alpha1.MigrationGate) { g.Prometheus.Timeout = &metav1.Duration{} },
		`gates[errors].interval: Invalid value: "10ms": must be at least 1s`:                                                      func(g *v1alpha1.MigrationGate) { g.Interval = &metav1.Duration{Duration: 10 * time.Millisecond} },
		`gates[errors]: Required value: exactly one of prometheus, consumers and object must be set`:                              func(g *v1alpha1.MigrationGate) { *g = v1alpha1.MigrationGate{Name: "errors"} },
		`gates[errors].failWhen: Forbidden: failWhen and passWhen go with prometheus`:                                             func(g *v1alpha1.MigrationGate) { object(g); g.FailWhen = "value > 1" },
		`gates[errors].object.apiVersion: Invalid value: "a/b/c"`:                                                                 func(g *v1alpha1.MigrationGate) { object(g); g.Object.APIVersion = "a/b/c" },
		`gates[errors].object.condition: Required value`:                                                                          func(g *v1alpha1.MigrationGate) { object(g); g.Object.Condition = "" },
		`gates[errors].consumers.maxErrorRatio: Invalid value: "1": must be a percentage from 0% to 100% with at most 4 decimals`: func(g *v1alpha1.MigrationGate) { consumers(g); g.Consumers.MaxErrorRatio = "1" },
		`gates[errors].consumers: Required value: at least one of maxErrorRatio and maxFailoverRatio must be set`:                 func(g *v1alpha1.MigrationGate) { consumers(g); *g.Consumers = v1alpha1.ConsumersGate{} },
	} {
		g := asked("http://prometheus.monitoring:9090", "q")
		change(&g)
		if err := Validate(g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	g := asked("http://me:secret@a", "$x")
	g.FailWhen, g.PassWhen = "valu > 1", "samples > baseline"
	first := Validate(g).Error()
	for range 20 {
		if again := Validate(g).Error(); again != first || strings.Count(first, "gates[errors]") != 5 {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}

// TestNeverPassOnNonFinite judges random numbers, most of them odd, and random answers.
func TestNeverPassOnNonFinite(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1, math.MaxFloat64, math.SmallestNonzeroFloat64}
	expressions := []string{"", "true", "value > 1", "!(value > 1)", "value <= 1 || value > 1", "value != value", "value == value", "value / baseline > 1", "baseline <= 1 || true", "samples < 5"}
	passes := 0
	if err := quick.Check(func(seed uint64) bool {
		random := rand.New(rand.NewPCG(seed, 1))
		g := asked("http://a", "q")
		g.Prometheus.BaselineQuery, g.Prometheus.SamplesQuery = "b", "s"
		g.MinSamples = random.Int64N(2)
		g.FailWhen, g.PassWhen = expressions[random.IntN(len(expressions))], expressions[1+random.IntN(len(expressions)-1)]
		c, err := compileGate(g)
		if err != nil {
			t.Fatal(err)
		}
		at := zero
		sample := func(v float64) answer {
			vector := model.Vector{{Value: model.SampleValue(v), Timestamp: model.TimeFromUnixNano(at.UnixNano())}}
			return one(vector[:random.IntN(9)/8^1], at, at.Add(-time.Minute))
		}
		value, baseline, samples := odd[random.IntN(len(odd))], odd[random.IntN(len(odd))], odd[random.IntN(len(odd))]
		judged := sample(value)
		result, _ := c.judge(judged, sample(baseline), sample(samples))
		if result == migration.Pass {
			passes++
		}
		finite := !math.IsNaN(value) && !math.IsInf(value, 0)
		return finite || result == migration.NoData
	}, &quick.Config{MaxCount: 3000}); err != nil {
		t.Error(err)
	}
	if passes < 100 {
		t.Errorf("%d of them pass: this says nothing", passes)
	}
}

// TestText keeps texts of others short and printable.
func TestText(t *testing.T) {
	if got := text("a\nb\x00c\u202e"); got != "a b c " {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("ä", MaxDetailBytes)
	if got := text(long); len(got) > MaxDetailBytes || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if exact := strings.Repeat("a", MaxDetailBytes); text(exact) != exact {
		t.Error("a text of the limit is cut")
	}
}
