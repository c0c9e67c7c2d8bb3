// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"math"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// waitingRing returns a HashRing with a candidate, and consumers in datacenters.
func waitingRing(name, movement string, consumers map[string]int32) *v1alpha1.HashRing {
	r := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: name, Labels: map[string]string{"fleet": "edge"}}}
	r.Status.Snapshot = &v1alpha1.SnapshotSize{Points: 1120, Bytes: 4192}
	if movement != "" {
		r.Status.Candidate = &v1alpha1.CandidateRing{Digest: "sha256:5ce370f0d06134cb", Movement: movement, Bytes: 9000}
	}
	if consumers != nil {
		r.Status.Consumers = &v1alpha1.ConsumerStatus{}
		for name, n := range consumers {
			r.Status.Consumers.Datacenters = append(r.Status.Consumers.Datacenters, v1alpha1.DatacenterConsumers{Name: name, Total: n})
		}
	}
	return r
}

var everywhere = map[string]int32{"lab01": 2, "lab02": 1, "ams01": 40, "fra02": 38, "sin01": 10, "syd02": 4}

// migrationPlanOf returns what "migration plan" prints.
func migrationPlanOf(t *testing.T, as format, rates []string, m *v1alpha1.RingMigration, rings ...client.Object) string {
	t.Helper()
	streams, out, _ := ioOf("")
	o := &migrationPlanOptions{streams: streams, output: &formatFlag{value: as}}
	var err error
	if o.load, err = parseLoad(rates, "95%"); err != nil {
		t.Fatal(err)
	}
	if err := o.run(t.Context(), storeOf(t, interceptor.Funcs{}, append(rings, m)...)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// fresh has not begun.
func fresh(m *v1alpha1.RingMigration) { m.Status = v1alpha1.RingMigrationStatus{} }

func TestMigrationPlan(t *testing.T) {
	rate := []string{"2000", "lab01=50"}
	ring := waitingRing("edge-cache", "80.00%", everywhere)
	assertGolden(t, "migration-plan-table", migrationPlanOf(t, formatTable, rate, soaking(t, fresh), ring))
	assertGolden(t, "migration-plan-json", migrationPlanOf(t, formatJSON, rate, soaking(t, fresh), ring))
	assertGolden(t, "migration-plan-yaml", migrationPlanOf(t, formatYAML, nil, soaking(t, fresh), ring))
	assertGolden(t, "migration-plan-running", migrationPlanOf(t, formatTable, nil, soaking(t), ring))
	assertGolden(t, "migration-plan-unread", migrationPlanOf(t, formatTable, rate, soaking(t, fresh)))
	dialled := soaking(t, fresh, func(m *v1alpha1.RingMigration) {
		m.Spec.Stages, m.Spec.Limits = m.Spec.Stages[:2], v1alpha1.MigrationLimits{MaxTraffic: "20%", ExcludedDatacenters: []string{"fra02"}}
		m.Spec.Retirement.Approval = v1alpha1.ApprovalAfterSoak
	})
	some := map[string]int32{"lab01": 2, "ams01": 40, "fra02": 3, "sin01": 10, "syd02": 4, "": 2}
	assertGolden(t, "migration-plan-limits", migrationPlanOf(t, formatTable, append(rate, "oslo=7"), dialled, waitingRing("edge-cache", "80.00%", some)))
}

// TestMigrationPlanOfSeveralRings takes the largest movement, and what all of them take.
func TestMigrationPlanOfSeveralRings(t *testing.T) {
	m := soaking(t, fresh, func(m *v1alpha1.RingMigration) {
		m.Spec.RingRef, m.Spec.RingSelector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "edge"}}
	})
	busy := waitingRing("images", "10.00%", everywhere)
	busy.Status.Migration = &v1alpha1.RingLock{Name: "other"}
	var report MigrationPlanReport
	text := migrationPlanOf(t, formatJSON, nil, m, waitingRing("video", "42.50%", everywhere), busy, waitingRing("text", "", nil))
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	if report.Movement != "42.50%" || report.Memory != (MigrationMemory{3 * 4192, 3*4192 + 2*9000, 2 * 9000}) || len(report.Rings) != 3 || report.Rings[0].Name != "images" {
		t.Errorf("%s, %+v, %+v", report.Movement, report.Memory, report.Rings)
	}
	for _, want := range []string{
		"HashRing images is being migrated by other: this one waits for the lock", "HashRing text has no candidate: the migration waits until a change of its spec makes one",
		"HashRing text says nothing about its consumers: which datacenters have some is not known",
	} {
		wantContains(t, text, want)
	}
	wantContains(t, migrationPlanOf(t, formatTable, nil, m), "note: spec.ringSelector selects no HashRing\n")
}

// TestMigrationPlanModel: over a stage, the added parts are the whole, and the extra requests are those of everything that moves.
func TestMigrationPlanModel(t *testing.T) {
	var report MigrationPlanReport
	text := migrationPlanOf(t, formatJSON, []string{"1000", "lab01=50"}, soaking(t, fresh), waitingRing("edge-cache", "80.00%", everywhere))
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	added, extra := map[string]int{}, map[string]float64{}
	for _, s := range report.Steps {
		added[s.Stage] += s.AddedBasisPoints
		extra[s.Stage] += *s.ExtraOriginRate
	}
	for stage, rate := range map[string]float64{"validation": 1050, "europe": 2000, "world": 2000} {
		if want := rate * 0.8 * 0.95; added[stage] != 10000 || math.Abs(extra[stage]-want) > 0.2 {
			t.Errorf("%s: %d basis points and %v/s, want 10000 and %v/s", stage, added[stage], extra[stage], want)
		}
	}
	if s := report.Steps[2]; s.ExtraOriginRate == nil || *s.ExtraOriginRate != 76 || s.Moves != "4.00%" {
		t.Errorf("5%% of two datacenters: %+v", s)
	}
}

func TestMigrationPlanOfAManifest(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.yaml", lintable)
	write(t, "two.yaml", lintable+"---\n"+lintable)
	write(t, "bad.yaml", "apiVersion: ringwright.dev/v1alpha1\nkind: RingMigration\nmetadata: {name: m}\nspec: {stages: []}\n")
	read := func(file, only string) (*v1alpha1.RingMigration, error) {
		streams, _, _ := ioOf("")
		return (&migrationPlanOptions{streams: streams, file: file, only: only}).migration(t.Context(), storeOf(t, interceptor.Funcs{}))
	}
	m, err := read("m.yaml", "")
	if err != nil || m.Name != "v1-to-v3" || m.Spec.Limits.MaxTraffic != "100%" {
		t.Errorf("%v: %+v", err, m)
	}
	_, err = read("two.yaml", "")
	wantError(t, err, "two.yaml has 2 RingMigrations: choose one by --name: v1-to-v3, v1-to-v3")
	_, err = read("m.yaml", "x")
	wantError(t, err, `m.yaml has no RingMigration of the name "x", only v1-to-v3`)
	_, err = read("bad.yaml", "")
	wantError(t, err, `"migration lint -f bad.yaml" lists everything`)
}

func TestMigrationPlanUsage(t *testing.T) {
	for want, args := range map[string][]string{
		`--rate is "x", it must be a number of requests per second, at least 0, or DATACENTER=RATE`: {"m", "--rate", "x"},
		`--rate is "=5", it must be`:                                {"m", "--rate", "=5"},
		`--rate is "-1", it must be`:                                {"m", "--rate", "-1"},
		`--rate is "lab01=NaN", it must be`:                         {"m", "--rate", "lab01=NaN"},
		`--rate is "Inf", it must be`:                               {"m", "--rate", "Inf"},
		`--hit-ratio is "0.95", it must be 0% to 100%, such as 95%`: {"m", "--hit-ratio", "0.95"},
		`--hit-ratio is "101%", it must be 0% to 100%`:              {"m", "--hit-ratio", "101%"},
		"no migration given: name a RingMigration":                  nil,
		`unexpected argument "m": -f says which migration`:          {"m", "-f", "x"},
		"--name chooses a RingMigration of a manifest: it needs -f": {"m", "--name", "x"},
	} {
		wantContains(t, fail(t, ExitUsage, append([]string{"migration", "plan"}, args...)...), want)
	}
}
