// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

const docs = "../../docs/gates.md"

// documented returns the gates of the manual.
func documented(t *testing.T) []v1alpha1.MigrationGate {
	t.Helper()
	var gates []v1alpha1.MigrationGate
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(gates:.*?)^```").FindAllStringSubmatch(read(t, docs), -1) {
		var spec struct{ Gates []v1alpha1.MigrationGate }
		if err := yaml.UnmarshalStrict([]byte(block[1]), &spec); err != nil {
			t.Fatalf("%v\n%s", err, block[1])
		}
		gates = append(gates, spec.Gates...)
	}
	if len(gates) < 8 {
		t.Fatalf("%d gates in %s", len(gates), docs)
	}
	return gates
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestDocumentedGates has a real Prometheus answer every query of the manual: it has none of those series, and takes all of them for PromQL.
func TestDocumentedGates(t *testing.T) {
	address := promServer(t)
	for _, g := range documented(t) {
		if err := Validate(g); err != nil {
			t.Errorf("%s: %v", g.Name, err)
		}
		if g.Prometheus == nil {
			continue
		}
		g.Prometheus.Address, g.Prometheus.Auth = address, nil
		s := about(5)
		got := measureAt(t, Options{}, s, g, zero.Add(20*time.Minute))
		if got.Result != migration.NoData {
			t.Errorf("%s: %s %s", g.Name, got.Result, got.Detail)
		}
	}
}

// TestDocumentedMetrics looks for the metrics of the manual where they are made.
func TestDocumentedMetrics(t *testing.T) {
	sources := ""
	for _, path := range []string{
		"../../pkg/ringclient/clientmetrics/clientmetrics.go", "../proxy/metrics.go", "../proxy/cachestatus.go", "metrics.go",
	} {
		sources += read(t, path)
	}
	names := regexp.MustCompile(`ringwright_(client_|proxy_|gate_|migration_)[a-z_]+`).FindAllString(read(t, docs), -1)
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) < 10 {
		t.Fatalf("%q", names)
	}
	for _, name := range names {
		short := strings.TrimSuffix(regexp.MustCompile(`^ringwright_(client_|proxy_)`).ReplaceAllString(name, ""), "_bucket")
		if !strings.Contains(sources, `"`+short+`"`) {
			t.Errorf("nothing makes %s", name)
		}
	}
}

// TestDocumentedVariables has all of them in the manual.
func TestDocumentedVariables(t *testing.T) {
	manual := read(t, docs)
	for _, name := range variables {
		if !strings.Contains(manual, "`$"+name+"`") {
			t.Errorf("%s does not have $%s", docs, name)
		}
	}
}
