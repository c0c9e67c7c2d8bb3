// SPDX-License-Identifier: Apache-2.0

package argocd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

var places = []migration.Place{
	migration.Pending, migration.Queued, migration.Preparing, migration.Dispatching, migration.Converging, migration.Soaking,
	migration.AwaitingApproval, migration.Complete, migration.Retiring, migration.Succeeded, migration.RollingBack, migration.RolledBack,
}

// migrationAt returns a RingMigration with the status that the operator writes at a place, held by some.
func migrationAt(t *testing.T, at migration.Place, holds ...migration.HoldType) *v1alpha1.RingMigration {
	t.Helper()
	m := &v1alpha1.RingMigration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "v1-to-v3", Generation: 3, UID: "u"},
		Spec: v1alpha1.RingMigrationSpec{
			RingRef: &v1alpha1.RingReference{Name: "edge"},
			Stages: []v1alpha1.MigrationStage{{
				Name: "world", Datacenters: v1alpha1.StageDatacenters{Remainder: true}, Steps: []v1alpha1.MigrationStep{{Traffic: "100%"}},
			}},
		},
	}
	spec, err := migrationapi.Spec(m.Spec)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	s := migration.State{At: at, Attempt: 1, SpecAttempt: 1, Plan: spec.Stages, Dispatches: 1, Dispatched: now, Back: &migration.Return{Cause: migration.CauseAction, Detail: "by alice", Since: now}}
	for _, hold := range holds {
		s.Holds = append(s.Holds, migration.Hold{Type: hold, Since: now, Detail: "why it holds"})
		if hold == migration.HoldInvalidPlan {
			spec.Stages = nil
		}
		if hold == migration.HoldPaused {
			s.Paused = &migration.Pause{Actor: "alice", At: now}
		}
	}
	m.Status = migrationapi.Status(m, s, migrationapi.Seen{Observation: migration.Observation{Spec: spec}}, metav1.NewTime(now))
	return m
}

// holdTypes returns every type of hold that package migration has.
func holdTypes(t *testing.T) []migration.HoldType {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/migration/hold.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var types []migration.HoldType
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Hold") {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			types = append(types, migration.HoldType(value))
		}
		return true
	})
	if len(types) < 15 {
		t.Fatalf("hold.go has %d types", len(types))
	}
	return types
}

// want is the health of a migration at a place with a hold, by rule. People end what does not end by itself.
func want(at migration.Place, hold migration.HoldType) string {
	switch at {
	case migration.Succeeded:
		return "Healthy"
	case migration.RolledBack:
		return "Degraded"
	case migration.RollingBack:
		return "Progressing"
	}
	switch {
	case hold == "":
		return "Progressing"
	case hold == migration.HoldInvalidPlan:
		return "Degraded"
	case hold == migration.HoldNoCandidate && at == migration.Pending:
		return "Healthy"
	case hold == migration.HoldNoCandidate:
		return "Progressing"
	case strings.HasPrefix(hold.EndedBy(), "whoever"):
		return "Suspended"
	}
	return "Progressing"
}

func TestHealthOfMigrations(t *testing.T) {
	for _, at := range places {
		for _, hold := range append(holdTypes(t), "") {
			var holds []migration.HoldType
			if hold != "" {
				holds = append(holds, hold)
			}
			m := migrationAt(t, at, holds...)
			object := objectOf(t, "RingMigration", m)
			code, message := healthOf(t, migrationHealth, object)
			if code != want(at, hold) || message == "" {
				t.Errorf("%s held by %q: got %s, %q, want %s", at, hold, code, message, want(at, hold))
			}
			wantAgreement(t, object, code, at, hold)
		}
	}
}

// wantAgreement compares with kstatus, which has no word for what people let go on.
func wantAgreement(t *testing.T, object *unstructured.Unstructured, code string, at migration.Place, hold migration.HoldType) {
	t.Helper()
	agreeing := map[string][]string{"Current": {"Healthy"}, "InProgress": {"Progressing", "Suspended"}, "Failed": {"Degraded"}}
	result, err := status.Compute(object)
	if err != nil || !slices.Contains(agreeing[string(result.Status)], code) {
		t.Errorf("%s held by %q: Argo CD says %s, kstatus %+v, %v", at, hold, code, result, err)
	}
}

func TestHealthOfMigrationsSays(t *testing.T) {
	stale := migrationAt(t, migration.Succeeded)
	stale.Generation++
	fresh := migrationAt(t, migration.Pending)
	fresh.Status = v1alpha1.RingMigrationStatus{ObservedGeneration: -1}
	for name, test := range map[string]struct {
		m       *v1alpha1.RingMigration
		code    string
		message string
	}{
		"made just now":             {fresh, "Progressing", "the operator has not looked at this generation yet"},
		"spec has changed since":    {stale, "Progressing", "the operator has not looked at this generation yet"},
		"done":                      {migrationAt(t, migration.Succeeded), "Healthy", "Succeeded: the candidate is the stable ring"},
		"gone back":                 {migrationAt(t, migration.RolledBack), "Degraded", "RolledBack: it went back: Action by alice"},
		"going back while paused":   {migrationAt(t, migration.RollingBack, migration.HoldPaused), "Progressing", "RollingBack: it goes back: Action by alice"},
		"on its way":                {migrationAt(t, migration.Converging), "Progressing", "Converging: stage world, step 1 of 1 (100%)"},
		"nothing to migrate":        {migrationAt(t, migration.Pending, migration.HoldNoCandidate), "Healthy", "there is nothing to migrate: NoCandidate: why it holds"},
		"nothing to, and suspended": {migrationAt(t, migration.Pending, migration.HoldSuspended, migration.HoldNoCandidate), "Suspended", "Suspended: why it holds; NoCandidate"},
		"waits for a person behind a gate": {
			migrationAt(t, migration.AwaitingApproval, migration.HoldGateUnknown, migration.HoldAwaitingApproval), "Suspended",
			"GateUnknown: why it holds; AwaitingApproval: why it holds",
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, message := healthOf(t, migrationHealth, objectOf(t, "RingMigration", test.m))
			if code != test.code || !strings.Contains(message, test.message) {
				t.Errorf("got %s, %q, want %s, %q", code, message, test.code, test.message)
			}
		})
	}
}

func TestHealthOfActions(t *testing.T) {
	for want, s := range map[string]v1alpha1.RingMigrationActionStatus{
		"Progressing: the operator has not decided yet": {},
		"Healthy: Accepted":                             {Phase: v1alpha1.ActionAccepted},
		"Degraded: StaleStep: it was given for another": {Phase: v1alpha1.ActionRejected, Reason: "StaleStep", Message: "it was given for another"},
	} {
		code, message := healthOf(t, actionHealth, objectOf(t, "RingMigrationAction", &v1alpha1.RingMigrationAction{Status: s}))
		if got := code + ": " + message; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// offered returns the names of the actions that Argo CD offers, sorted.
func offered(t *testing.T, m *v1alpha1.RingMigration) string {
	t.Helper()
	var names []string
	count := 0
	run(t, script(t, discovery), objectOf(t, "RingMigration", m)).ForEach(func(name, action lua.LValue) {
		count++
		if action.(*lua.LTable).RawGetString("disabled") == lua.LFalse {
			names = append(names, name.String())
		}
	})
	if count != len(actionTypes) {
		t.Errorf("%d actions, not %d", count, len(actionTypes))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestActionsThatAreOffered(t *testing.T) {
	for at, want := range map[migration.Place]string{
		migration.Pending: "pause rollback", migration.Queued: "pause rollback", migration.Preparing: "pause rollback",
		migration.Dispatching: "pause rollback", migration.Converging: "pause rollback", migration.Soaking: "pause rollback skip",
		migration.AwaitingApproval: "pause rollback skip", migration.Complete: "pause rollback", migration.Retiring: "",
		migration.Succeeded: "", migration.RollingBack: "pause", migration.RolledBack: "pause retry",
	} {
		if got := offered(t, migrationAt(t, at)); got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
	if got := offered(t, migrationAt(t, migration.AwaitingApproval, migration.HoldAwaitingApproval, migration.HoldPaused)); got != "approve reject resume rollback skip" {
		t.Errorf("paused while it awaits approval: got %q", got)
	}
	backward := migrationAt(t, migration.RolledBack)
	backward.Spec.Direction = v1alpha1.DirectionBackward
	if got := offered(t, backward); got != "pause" {
		t.Errorf("rolled back by spec.direction: got %q", got)
	}
	if got := offered(t, &v1alpha1.RingMigration{}); got != "" {
		t.Errorf("made just now: got %q", got)
	}
}
