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
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// healthKey is where Argo CD looks for the script in its ConfigMap argocd-cm.
const healthKey = "resource.customizations.health.ringwright.dev_HashRing"

func script(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../config/argocd/health.lua")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// healthOf runs the script with what Argo CD gives it: package, base and table, and no other library, for a second at most.
func healthOf(t *testing.T, object *unstructured.Unstructured) (code, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", luaValue(l, object.Object))
	if err := l.DoString(script(t)); err != nil {
		t.Fatal(err)
	}
	table, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns a %s, not a table", l.Get(-1).Type())
	}
	return table.RawGetString("status").String(), table.RawGetString("message").String()
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

// objectOf returns a HashRing as a client reads it.
func objectOf(t *testing.T, ring *v1alpha1.HashRing) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ring)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HashRing"))
	return object
}

func TestHealthOfEveryState(t *testing.T) {
	for _, s := range states(t) {
		t.Run(s.name, func(t *testing.T) {
			ready := meta.FindStatusCondition(s.ring.Status.Conditions, string(v1alpha1.ConditionReady))
			if got := reasonOf(ready); got != s.ready {
				t.Fatalf("Ready has reason %q, want %q", got, s.ready)
			}
			object := objectOf(t, s.ring)
			code, message := healthOf(t, object)
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
		object := objectOf(t, ring)
		code, _ := healthOf(t, object)
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

// TestPatchIsTheScript: what users apply is what is tested.
func TestPatchIsTheScript(t *testing.T) {
	text, err := os.ReadFile("../../config/argocd/argocd-cm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var patch struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(text, &patch); err != nil {
		t.Fatal(err)
	}
	if len(patch.Data) != 1 || patch.Data[healthKey] != script(t) {
		t.Errorf("argocd-cm.yaml does not hold health.lua under %s, and nothing else", healthKey)
	}
}
