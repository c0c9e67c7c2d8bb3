// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/internal/migration"
)

// readTimeout is how long a read from the API server may take.
const readTimeout = 10 * time.Second

// measureObject reads an object. It never says Fail: that something is not ready is no sign of harm by the candidate, and a rollout
// of its own makes it so for a while.
func (r *Runner) measureObject(ctx context.Context, t *task) Reading {
	at := r.options.Clock.Now().Truncate(time.Second)
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	o := t.gate.Object
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
	err := r.options.Objects.Get(limited, types.NamespacedName{Namespace: t.subject.Namespace, Name: o.Name}, found)
	result, detail := judgeObject(found, err, o.Condition, t.subject.Namespace)
	if t.subject.SelfTest && result == migration.Pass {
		result, detail = migration.Inconclusive, "self-test passed: "+detail
	}
	return t.reading(at, result, fmt.Sprintf("%s %s: %s", o.Kind, o.Name, detail))
}

// judgeObject says what an object means, or the error of reading it.
func judgeObject(found *unstructured.Unstructured, err error, condition, namespace string) (migration.Result, string) {
	kind := found.GroupVersionKind()
	switch {
	case meta.IsNoMatchError(err):
		return migration.Error, fmt.Sprintf("the cluster has no kind %s in %s", kind.Kind, kind.GroupVersion())
	case apierrors.IsForbidden(err):
		return migration.Error, fmt.Sprintf(`the operator may not read it: a ClusterRole with label ringwright.dev/aggregate-to-gates: "true" has to allow get on %s of group %q`,
			kind.Kind, kind.Group)
	case apierrors.IsNotFound(err):
		return migration.NoData, "it is not there"
	case err != nil:
		return migration.Error, err.Error()
	case found.GetNamespace() != namespace:
		return migration.Error, "it is in no namespace, and a gate looks at what is beside the migration"
	case found.GetDeletionTimestamp() != nil:
		return migration.Inconclusive, "it is being deleted"
	}
	if observed, has, _ := unstructured.NestedInt64(found.Object, "status", "observedGeneration"); has && observed < found.GetGeneration() {
		return migration.Inconclusive, fmt.Sprintf("its status is of generation %d, and it is at %d", observed, found.GetGeneration())
	}
	c := findCondition(found, condition)
	if c == nil {
		return migration.NoData, fmt.Sprintf("its status has no condition %s", condition)
	}
	if observed, has, _ := unstructured.NestedInt64(c, "observedGeneration"); has && observed < found.GetGeneration() {
		return migration.Inconclusive, fmt.Sprintf("its condition %s is of generation %d, and it is at %d", condition, observed, found.GetGeneration())
	}
	status, _, _ := unstructured.NestedString(c, "status")
	reason, _, _ := unstructured.NestedString(c, "reason")
	detail := fmt.Sprintf("condition %s is %s (%s)", condition, status, reason)
	if status == "True" {
		return migration.Pass, detail
	}
	return migration.Inconclusive, detail
}

// findCondition returns a condition of the status; nil where there is none of that type.
func findCondition(found *unstructured.Unstructured, kind string) map[string]any {
	list, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
	for _, item := range list {
		if c, is := item.(map[string]any); is && c["type"] == kind {
			return c
		}
	}
	return nil
}
