// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/orca"
)

func manual(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../docs/weights-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestDocumentedPush sends what the example of curl sends.
func TestDocumentedPush(t *testing.T) {
	text := manual(t)
	body := regexp.MustCompile(`(?s)curl .*?-d '(.*?)'`).FindStringSubmatch(text)
	if body == nil || !strings.Contains(text, Path+" ") || !strings.Contains(text, WindowHeader+": 5s") {
		t.Fatal("no example")
	}
	f := newFixture()
	if w := f.post("pod-b", jsonType, "?window=5s", body[1]); w.Code != 200 || !strings.Contains(text, "`"+strings.TrimSpace(w.Body.String())+"`") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if r := f.sink.reports[0]; r.CPU != 0.42 || r.InFlight != 3.2 || r.Requests != 602.5 || r.Errors != 2.5 {
		t.Errorf("%+v", r)
	}
}

// TestDocumentedManifests are those that the API has.
func TestDocumentedManifests(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(manual(t), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	var load v1alpha1.LoadMeasurement
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(blocks[0][1]), &load); err != nil || load.Sources[0].Prometheus.EndpointLabel != "pod" {
		t.Errorf("%v, %+v", err, load)
	}
	if err := yaml.UnmarshalStrict([]byte(blocks[1][1]), &pod); err != nil {
		t.Fatal(err)
	}
	if source := pod.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken; source.Audience != authn.DefaultAudience {
		t.Error(source)
	}
}

// TestDocumentedLimits are those of the code.
func TestDocumentedLimits(t *testing.T) {
	text := manual(t)
	g, r := New(Options{}), NewRouter(RouterOptions{})
	for _, row := range []string{
		fmt.Sprintf("| an OrcaLoadReport | %d bytes, %d entries a map |", orca.MaxBytes, orca.MaxEntries),
		fmt.Sprintf("| CPU | 0 to %d |", loadreport.MaxUtilization),
		fmt.Sprintf("| other figures, in a report | 0 to %g |", loadreport.MaxFigure),
		fmt.Sprintf("at most %s ahead", loadreport.MaxAhead), fmt.Sprintf("%s at most |", loadreport.MaxAge), fmt.Sprintf("| at most %s,", loadreport.MaxWindow),
		fmt.Sprintf("| names | %d bytes |", loadreport.MaxNameBytes),
		fmt.Sprintf("| %g a second, %d at once |", g.options.Rate, g.options.Burst),
		fmt.Sprintf("| %d,000 reports |", MaxBatch/1000), fmt.Sprintf("| %d,000 | `Overflow`", r.options.Queue/1000),
	} {
		if !strings.Contains(text, row) {
			t.Errorf("the manual does not have: %s", row)
		}
	}
}
