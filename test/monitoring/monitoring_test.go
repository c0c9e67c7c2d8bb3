// SPDX-License-Identifier: Apache-2.0

// Package monitoring_test holds config/prometheus, config/grafana and docs/runbooks to each other, and asks promtool whether
// the alerts say what they shall. That the metrics of operators and agents exist is tested in
// test/operator, where an operator serves them; for those of balancers it is here.
package monitoring_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var root = filepath.Join("..", "..")

// rule is an alert, or what a panel shows.
type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type groups struct {
	Groups []group `json:"groups"`
}

func read(t *testing.T, parts ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// files are where alerts are, each with the tests of its own.
var files = map[string]string{"rules.yaml": "alerts.yaml", "migration-rules.yaml": "migration.yaml", "weight-rules.yaml": "weights.yaml"}

// alerts returns those of a file.
func alerts(t *testing.T, file string) groups {
	t.Helper()
	var object struct {
		Spec groups `json:"spec"`
	}
	if err := yaml.Unmarshal(read(t, "config", "prometheus", file), &object); err != nil {
		t.Fatal(err)
	}
	if len(object.Spec.Groups) != 1 || len(object.Spec.Groups[0].Rules) == 0 {
		t.Fatalf("groups of %s: %+v", file, object.Spec.Groups)
	}
	return object.Spec
}

// everyAlert returns those of all files.
func everyAlert(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for _, file := range slices.Sorted(maps.Keys(files)) {
		all = append(all, alerts(t, file).Groups[0].Rules...)
	}
	return all
}

// promtool runs the program, which CI has.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI has no promtool: install Debian's prometheus")
		}
		t.Skip("no promtool: install Debian's prometheus")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// write writes rules as Prometheus reads them.
func write(t *testing.T, dir string, g groups) {
	t.Helper()
	text, err := yaml.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRunbooks: each alert has a page that answers what it means and what to do, and each page an alert.
func TestRunbooks(t *testing.T) {
	const base = "https://github.com/ringwright/ringwright/blob/main/"
	var pages []string
	for _, alert := range everyAlert(t) {
		page := "docs/runbooks/" + alert.Alert + ".md"
		pages = append(pages, filepath.Join(root, page))
		if alert.Annotations["runbook_url"] != base+page {
			t.Errorf("%s: runbook_url %s, want %s", alert.Alert, alert.Annotations["runbook_url"], base+page)
		}
		if alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
			t.Errorf("%s: annotations %v", alert.Alert, alert.Annotations)
		}
		if severity := alert.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
			t.Errorf("%s: severity %q", alert.Alert, severity)
		}
		if _, err := time.ParseDuration(alert.For); err != nil {
			t.Errorf("%s: for: %v", alert.Alert, err)
		}
		text := string(read(t, page))
		at := 0
		for _, heading := range []string{"# " + alert.Alert + "\n", "\n## Meaning\n", "\n## Impact\n", "\n## Diagnosis\n", "\n## Mitigation\n"} {
			next := strings.Index(text[at:], heading)
			if next < 0 {
				t.Errorf("%s has no %q behind the heading before", page, strings.TrimSpace(heading))
				break
			}
			at += next
		}
	}
	there, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(pages) // An alert that is in both files would have its page twice.
	if !slices.Equal(pages, there) {
		t.Errorf("pages %q, alerts %q", there, pages)
	}
}

// TestAlerts: they parse, each of them has a test, and those pass.
func TestAlerts(t *testing.T) {
	for file, testFile := range files {
		t.Run(file, func(t *testing.T) {
			rules := alerts(t, file)
			tests := read(t, "test", "monitoring", "testdata", testFile)
			for _, alert := range rules.Groups[0].Rules {
				fires := regexp.MustCompile(`alertname: ` + alert.Alert + `\n +exp_alerts:\n`)
				if !fires.Match(tests) {
					t.Errorf("no test has %s fire", alert.Alert)
				}
			}
			dir := t.TempDir()
			write(t, dir, rules)
			if err := os.WriteFile(filepath.Join(dir, testFile), tests, 0o600); err != nil {
				t.Fatal(err)
			}
			promtool(t, dir, "check", "rules", "--lint-fatal", "rules.yaml")
			promtool(t, dir, "test", "rules", testFile)
		})
	}
}

type dashboard struct {
	UID        string `json:"uid"`
	Templating struct {
		List []struct {
			Name  string          `json:"name"`
			Query json.RawMessage `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID         int    `json:"id"`
		Type       string `json:"type"`
		Title      string `json:"title"`
		Datasource struct {
			UID string `json:"uid"`
		} `json:"datasource"`
		GridPos struct{ X, Y, W, H int } `json:"gridPos"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

// TestDashboards: they are JSON that Grafana takes, with expressions that parse, and no panel covers another.
func TestDashboards(t *testing.T) {
	for uid, want := range map[string][]string{
		"ringwright":           {"datasource", "namespace", "ring"},
		"ringwright-migration": {"datasource", "namespace", "migration", "datacenter"},
		"ringwright-weights":   {"datasource", "namespace", "policy"},
	} {
		t.Run(uid, func(t *testing.T) { checkDashboard(t, uid, want) })
	}
}

func checkDashboard(t *testing.T, uid string, want []string) {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, "config", "grafana", uid+".json"), &d); err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, variable := range d.Templating.List {
		variables = append(variables, variable.Name)
	}
	if d.UID != uid || !slices.Equal(variables, want) {
		t.Errorf("uid %s, variables %q, want %q", d.UID, variables, want)
	}
	fill := strings.NewReplacer("$namespace", ".*", "$ring", ".*", "$migration", ".*", "$policy", ".*", "$datacenter", ".*", "$__rate_interval", "5m", "$__range", "6h")
	ids, cells, panels := map[int]bool{}, map[[2]int]string{}, group{Name: "panels"}
	for _, panel := range d.Panels {
		if ids[panel.ID] {
			t.Errorf("%s: id %d is there twice", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s is in the way of %q, or too far right", panel.Title, other)
				}
				cells[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			continue
		}
		if panel.Datasource.UID != "${datasource}" || len(panel.Targets) == 0 {
			t.Errorf("%s: data source %s, %d targets", panel.Title, panel.Datasource.UID, len(panel.Targets))
		}
		for i, target := range panel.Targets {
			panels.Rules = append(panels.Rules, rule{Record: fmt.Sprintf("panel_%d_%d", panel.ID, i), Expr: fill.Replace(target.Expr)})
		}
	}
	dir := t.TempDir()
	write(t, dir, groups{[]group{panels}})
	promtool(t, dir, "check", "rules", "--lint-fatal", "rules.yaml")
}

// TestServiceMonitor: each selects the Service that config/default has for it, and that one only; alerts go by the names of those. The labels
// namespace and name that metrics have stay as they are.
func TestServiceMonitor(t *testing.T) {
	found := map[any][]any{}
	services := build(t, "default")
	for _, object := range build(t, "prometheus") {
		if at(object, "metadata", "namespace") != "ringwright-system" {
			t.Errorf("%v is in namespace %v", object["kind"], at(object, "metadata", "namespace"))
		}
		if object["kind"] != "ServiceMonitor" {
			continue
		}
		selector, _ := at(object, "spec", "selector", "matchLabels").(map[string]any)
		if len(selector) == 0 {
			t.Errorf("%v selects everything", at(object, "metadata", "name"))
		}
		found[at(object, "metadata", "name")] = selected(services, selector)
		endpoints, _ := at(object, "spec", "endpoints").([]any)
		if len(endpoints) != 1 || at(endpoints[0].(map[string]any), "honorLabels") != true {
			t.Errorf("%v has endpoints %v", at(object, "metadata", "name"), endpoints)
		}
	}
	want := map[any][]any{"ringwright": {"ringwright-controller-manager-metrics"}, "ringwright-balancer": {"ringwright-balancer-metrics"}}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("they select %v, want %v", found, want)
	}
}

// build returns the objects of a folder of config.
func build(t *testing.T, dir string) []map[string]any {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", dir))
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	for _, resource := range built.Resources() {
		object, err := resource.Map()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// at returns a field of an object.
func at(object map[string]any, path ...string) any {
	for _, key := range path[:len(path)-1] {
		object, _ = object[key].(map[string]any)
	}
	return object[path[len(path)-1]]
}

// selected returns the names of the Services that have the labels.
func selected(objects []map[string]any, selector map[string]any) []any {
	var names []any
	for _, object := range objects {
		labels, _ := at(object, "metadata", "labels").(map[string]any)
		matches := object["kind"] == "Service"
		for key, value := range selector {
			matches = matches && labels[key] == value
		}
		if matches {
			names = append(names, at(object, "metadata", "name"))
		}
	}
	return names
}

// TestPodMonitor: it selects the pods of each sample that has an agent, and their port.
func TestPodMonitor(t *testing.T) {
	var monitor struct {
		Spec struct {
			NamespaceSelector struct {
				Any bool `json:"any"`
			} `json:"namespaceSelector"`
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			Endpoints []struct {
				Port string `json:"port"`
			} `json:"podMetricsEndpoints"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(read(t, "config", "prometheus", "podmonitor.yaml"), &monitor); err != nil {
		t.Fatal(err)
	}
	if len(monitor.Spec.Selector.MatchLabels) != 1 || len(monitor.Spec.Endpoints) != 1 || !monitor.Spec.NamespaceSelector.Any {
		t.Fatalf("it is %+v", monitor)
	}
	samples, err := filepath.Glob(filepath.Join(root, "config", "samples", "consumer_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	agents := 0
	for _, sample := range samples {
		text := string(read(t, "config", "samples", filepath.Base(sample)))
		if !strings.Contains(text, "command: [/agent]") {
			continue
		}
		agents++
		if port := "{name: " + monitor.Spec.Endpoints[0].Port + ", containerPort: 9465}"; !strings.Contains(text, port) {
			t.Errorf("%s has no port %s", sample, port)
		}
		for name, value := range monitor.Spec.Selector.MatchLabels {
			if label := fmt.Sprintf("%s: %q", name, value); !strings.Contains(text, label) {
				t.Errorf("%s has no label %s", sample, label)
			}
		}
	}
	if agents < 3 {
		t.Errorf("%d samples have an agent", agents)
	}
}
