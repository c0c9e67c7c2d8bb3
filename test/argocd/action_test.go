// SPDX-License-Identifier: Apache-2.0

package argocd_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ringwright/ringwright/internal/crdschema"
	"github.com/ringwright/ringwright/internal/migration"
)

// goValue is a value of Lua as Argo CD encodes it.
func goValue(value lua.LValue) any {
	switch value := value.(type) {
	case lua.LString:
		return string(value)
	case *lua.LTable:
		if n := value.Len(); n > 0 {
			list := make([]any, n)
			for i := range list {
				list[i] = goValue(value.RawGetInt(i + 1))
			}
			return list
		}
		object := map[string]any{}
		value.ForEach(func(key, item lua.LValue) { object[key.String()] = goValue(item) })
		return object
	default:
		return nil
	}
}

// TestActionsCreate what the API server takes.
func TestActionsCreate(t *testing.T) {
	schema, err := crdschema.RingMigrationAction()
	if err != nil {
		t.Fatal(err)
	}
	m := migrationAt(t, migration.AwaitingApproval, migration.HoldAwaitingApproval)
	for _, kind := range actionTypes {
		t.Run(string(kind), func(t *testing.T) {
			result, ok := goValue(run(t, scriptOf(t, kind), objectOf(t, "RingMigration", m))).([]any)
			if !ok || len(result) != 1 {
				t.Fatalf("got %v, want a list of one", result)
			}
			impact, ok := result[0].(map[string]any)
			if !ok || impact["operation"] != "create" {
				t.Fatalf("got %v, want a create", result[0])
			}
			action := &unstructured.Unstructured{Object: impact["resource"].(map[string]any)}
			if name := action.GetName(); !regexp.MustCompile(`^v1-to-v3-`+nameOf(kind)+`-\d{14}$`).MatchString(name) || action.GetNamespace() != "cdn" {
				t.Errorf("name %s/%s", action.GetNamespace(), name)
			}
			want := map[string]any{
				"migrationRef": map[string]any{"name": "v1-to-v3"}, "type": string(kind), "reason": "given in Argo CD",
				"step":  map[string]any{"token": "1.1.1-1", "name": "world (1/1)"},
				"actor": map[string]any{"username": "system:serviceaccount:argocd:argocd-server"},
			}
			if diff := cmp.Diff(want, action.Object["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := schema.Admit(t.Context(), action); err != nil {
				t.Error(err)
			}
		})
	}
}
