// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// objects reads one object, or returns an error.
type objects struct {
	client.Reader
	text string
	err  error
	key  client.ObjectKey
	kind schema.GroupVersionKind
}

func (o *objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found := into.(*unstructured.Unstructured)
	o.key, o.kind = key, found.GroupVersionKind()
	if o.err != nil {
		return o.err
	}
	text, err := yaml.YAMLToJSON([]byte(o.text))
	if err != nil {
		return err
	}
	return found.UnmarshalJSON(text)
}

func TestObjects(t *testing.T) {
	head := "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: cdn, name: edge, generation: 7%s}, status: {%s}}"
	object := func(metadata, status string) string {
		return strings.NewReplacer("7%s", "7"+metadata, "{%s}", "{"+status+"}").Replace(head)
	}
	available := func(fields string) string {
		return "conditions: [{type: Progressing, status: 'False'}, {type: Available, " + fields + "}]"
	}
	ready := object("", available("status: 'True', reason: MinimumReplicasAvailable"))
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, c := range map[string]struct {
		text     string
		err      error
		selfTest bool
		want     migration.Result
		detail   string
	}{
		"true":              {ready, nil, false, migration.Pass, "Deployment edge: condition Available is True (MinimumReplicasAvailable)"},
		"false":             {object("", available("status: 'False', reason: Down")), nil, false, migration.Inconclusive, "condition Available is False (Down)"},
		"unknown":           {object("", available("status: Unknown")), nil, false, migration.Inconclusive, "condition Available is Unknown"},
		"no condition":      {object("", ""), nil, false, migration.NoData, "its status has no condition Available"},
		"another condition": {object("", "conditions: [{type: Other, status: 'True'}]"), nil, false, migration.NoData, "its status has no condition Available"},
		"behind":            {object("", "observedGeneration: 6, "+available("status: 'True'")), nil, false, migration.Inconclusive, "its status is of generation 6, and it is at 7"},
		"not behind":        {object("", "observedGeneration: 7, "+available("status: 'True'")), nil, false, migration.Pass, "is True"},
		"condition behind":  {object("", available("status: 'True', observedGeneration: 6")), nil, false, migration.Inconclusive, "its condition Available is of generation 6"},
		"deleted":           {object(", deletionTimestamp: '2026-03-01T12:00:00Z'", available("status: 'True'")), nil, false, migration.Inconclusive, "it is being deleted"},
		"cluster-wide":      {"{apiVersion: v1, kind: Node, metadata: {name: edge}, status: {" + available("status: 'True'") + "}}", nil, false, migration.Error, "it is in no namespace"},
		"odd":               {object("", "conditions: 7"), nil, false, migration.NoData, "no condition"},
		"missing":           {"", apierrors.NewNotFound(deployments, "edge"), false, migration.NoData, "it is not there"},
		"forbidden": {"", apierrors.NewForbidden(deployments, "edge", nil), false, migration.Error,
			`a ClusterRole with label ringwright.dev/aggregate-to-gates: "true" has to allow get on Deployment of group "apps"`},
		"unknown kind":        {"", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}, false, migration.Error, "the cluster has no kind Deployment in apps/v1"},
		"API server is down":  {"", errors.New("connection refused"), false, migration.Error, "connection refused"},
		"self-test":           {ready, nil, true, migration.Inconclusive, "self-test passed: condition Available is True"},
		"self-test not ready": {object("", available("status: 'False'")), nil, true, migration.Inconclusive, "is False"},
		"self-test not there": {"", apierrors.NewNotFound(deployments, "edge"), true, migration.NoData, "it is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			reader := &objects{text: c.text, err: c.err}
			s := about(5)
			s.SelfTest = c.selfTest
			g := v1alpha1.MigrationGate{Name: "ready", Object: &v1alpha1.ObjectGate{APIVersion: "apps/v1", Kind: "Deployment", Name: "edge", Condition: "Available"}}
			now := zero.Add(20*time.Minute + time.Millisecond)
			got := measureAt(t, Options{Objects: reader, Clock: clocktesting.NewFakeClock(now)}, s, g, now)
			if got.Result != c.want || !strings.Contains(got.Detail, c.detail) || !got.At.Equal(now.Truncate(time.Second)) {
				t.Errorf("%s %q, want %s %q", got.Result, got.Detail, c.want, c.detail)
			}
			if reader.key != (client.ObjectKey{Namespace: "cdn", Name: "edge"}) || reader.kind != (schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}) {
				t.Errorf("read %s %s", reader.kind, reader.key)
			}
		})
	}
}
