// SPDX-License-Identifier: Apache-2.0

// Package argocd_test runs the health script of config/argocd as Argo CD does, on the status that the operator writes in every
// state of a HashRing, and compares it with what kstatus says.
package argocd_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// The scripts of config/argocd.
const (
	ringHealth      = "health.lua"
	migrationHealth = "ringmigration_health.lua"
	actionHealth    = "ringmigrationaction_health.lua"
	weightsHealth   = "weightpolicy_health.lua"
	discovery       = "ringmigration_actions.lua"
	actionScript    = "ringmigration_action.lua"
)

func script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../config/argocd/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// healthOf runs a script of health.
func healthOf(t *testing.T, name string, object *unstructured.Unstructured) (code, message string) {
	t.Helper()
	table := run(t, script(t, name), object)
	return table.RawGetString("status").String(), table.RawGetString("message").String()
}

// run runs a script with what Argo CD gives it: package, base and table, the time of os, and no other library, for a second at most.
func run(t *testing.T, text string, object *unstructured.Unstructured) *lua.LTable {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	t.Cleanup(l.Close)
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.OsLibName: openTime,
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.PreloadModule(lua.OsLibName, openTime)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", luaValue(l, object.Object))
	if err := l.DoString(text); err != nil {
		t.Fatal(err)
	}
	table, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns a %s, not a table", l.Get(-1).Type())
	}
	return table
}

// openTime opens what Argo CD leaves of library os.
func openTime(l *lua.LState) int {
	full := lua.NewState()
	defer full.Close()
	os, ok := full.GetGlobal(lua.OsLibName).(*lua.LTable)
	if !ok {
		return 0
	}
	left := l.NewTable()
	for _, name := range []string{"date", "time"} {
		if function, ok := os.RawGetString(name).(*lua.LFunction); ok {
			left.RawSetString(name, l.NewFunction(function.GFunction))
		}
	}
	l.Push(left)
	return 1
}

func luaValue(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case string:
		return lua.LString(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		list := l.NewTable()
		for _, item := range value {
			list.Append(luaValue(l, item))
		}
		return list
	case map[string]any:
		table := l.NewTable()
		for key, item := range value {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	default:
		return lua.LNil
	}
}

// objectOf returns an object as a client reads it.
func objectOf(t *testing.T, kind string, object any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return u
}

func TestHealthOfEveryState(t *testing.T) {
	for _, s := range states(t) {
		t.Run(s.name, func(t *testing.T) {
			ready := meta.FindStatusCondition(s.ring.Status.Conditions, string(v1alpha1.ConditionReady))
			if got := reasonOf(ready); got != s.ready {
				t.Fatalf("Ready has reason %q, want %q", got, s.ready)
			}
			object := objectOf(t, "HashRing", s.ring)
			code, message := healthOf(t, ringHealth, object)
			if code != s.argo || !strings.Contains(message, s.message) {
				t.Errorf("Argo CD: got %s, %q, want %s, %q", code, message, s.argo, s.message)
			}
			result, err := status.Compute(object)
			if err != nil || string(result.Status) != s.kstatus {
				t.Errorf("kstatus: got %+v, %v, want %s", result, err, s.kstatus)
			}
		})
	}
}

func reasonOf(condition *metav1.Condition) v1alpha1.ConditionReason {
	if condition == nil {
		return ""
	}
	return v1alpha1.ConditionReason(condition.Reason)
}

// TestHealthAgreesWithKstatus in general, whatever the conditions are: Suspended is the only word that kstatus does not have.
func TestHealthAgreesWithKstatus(t *testing.T) {
	want := map[string][]string{"Current": {"Healthy", "Suspended"}, "InProgress": {"Progressing"}, "Failed": {"Degraded"}}
	kinds := []v1alpha1.ConditionType{
		v1alpha1.ConditionReady, v1alpha1.ConditionHeld, v1alpha1.ConditionMigrationRequired, v1alpha1.ConditionStalled, v1alpha1.ConditionReconciling,
	}
	for set := range 1 << len(kinds) {
		ring := newRing()
		ring.Status.ObservedGeneration = ring.Generation
		for i, kind := range kinds {
			truth := metav1.ConditionFalse
			if set>>i&1 == 1 {
				truth = metav1.ConditionTrue
			}
			meta.SetStatusCondition(&ring.Status.Conditions, metav1.Condition{Type: string(kind), Status: truth, Reason: "Pinned", Message: "m"})
		}
		if stalled, reconciling := set>>3&1 == 1, set>>4&1 == 1; stalled && reconciling {
			continue // Never both: then kstatus takes the first.
		}
		object := objectOf(t, "HashRing", ring)
		code, _ := healthOf(t, ringHealth, object)
		result, err := status.Compute(object)
		if err != nil || !slices.Contains(want[string(result.Status)], code) {
			t.Errorf("set %05b: Argo CD says %s, kstatus %+v, %v", set, code, result, err)
		}
	}
}

// TestStatesHaveEveryReason: one that is added has to be thought about here.
func TestStatesHaveEveryReason(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range states(t) {
		for _, condition := range s.ring.Status.Conditions {
			seen[condition.Reason] = true
		}
	}
	reasons := declaredReasons(t)
	if len(reasons) < 20 {
		t.Fatalf("conditions.go has %d reasons", len(reasons))
	}
	for _, reason := range reasons {
		if !seen[reason] {
			t.Errorf("reason %s is in no state of this test", reason)
		}
	}
}

// declaredReasons returns the values of the constants of type ConditionReason.
func declaredReasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "ConditionReason" {
			for _, value := range spec.Values {
				reason, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				reasons = append(reasons, reason)
			}
		}
		return false
	})
	return reasons
}
