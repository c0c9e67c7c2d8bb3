// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/plan"
)

// moments is a reader that shows a publication at successive moments, one for each time that the routing file is read. It
// stands in for an API server in the middle of a publication, which a real one cannot be held in; test/cli has a real one.
type moments struct {
	shown []*plan.Publication
	read  int
}

func (m *moments) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if key.Name == "edge-routing" && m.read < len(m.shown) {
		m.read++
	}
	for _, cm := range m.shown[m.read-1].ConfigMaps {
		if cm.Name == key.Name {
			*obj.(*corev1.ConfigMap) = corev1.ConfigMap{Data: cm.Data, BinaryData: cm.BinaryData}
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
}

func (m *moments) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed")
}

// publicationOf renders the ring of a manifest.
func publicationOf(t *testing.T, manifest string) *plan.Publication {
	t.Helper()
	objects, err := parseManifest("manifest", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := manifestRef{}.admit(t.Context(), objects[0])
	if err != nil {
		t.Fatal(err)
	}
	desired, err := plan.Build(ring.Spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Render(plan.Ref{Namespace: "cdn", Name: "edge"}, desired, plan.Numbers{Revision: 1, Generation: 1})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestClusterWaitsForAPublicationToEnd: the operator writes the snapshot, then the routing file.
func TestClusterWaitsForAPublicationToEnd(t *testing.T) {
	before, after := publicationOf(t, edgeManifest), publicationOf(t, shardsManifest)
	between := &plan.Publication{ConfigMaps: append([]plan.ConfigMap{before.ConfigMaps[2]}, after.ConfigMaps[:2]...)}
	chunked := publicationOf(t, chunkedManifest(2))
	// The operator has given the second chunk up, after a routing file that is read next time.
	givenUp := &plan.Publication{ConfigMaps: slices.DeleteFunc(slices.Clone(chunked.ConfigMaps), func(cm plan.ConfigMap) bool { return cm.Name == "edge-a-1" })}
	for name, test := range map[string]struct {
		shown []*plan.Publication
		reads int
		ok    bool
	}{
		"in chunks":               {[]*plan.Publication{chunked}, 1, true},
		"a chunk is given up":     {[]*plan.Publication{givenUp, after}, 2, true},
		"a chunk is lost":         {[]*plan.Publication{givenUp, givenUp, givenUp, givenUp, givenUp, givenUp}, 5, false},
		"nothing is going on":     {[]*plan.Publication{before}, 1, true},
		"once between two writes": {[]*plan.Publication{between, after}, 2, true},
		"for a while":             {[]*plan.Publication{between, between, between, after}, 4, true},
		"it does not end":         {[]*plan.Publication{between, between, between, between, between, between, after}, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reader := &moments{shown: test.shown}
				p, err := cluster{reader: reader, namespace: "cdn", name: "edge", again: publicationTime}.read(t.Context(), stableRing)
				if err != nil {
					t.Fatal(err)
				}
				_, err = p.open()
				if (err == nil) != test.ok {
					t.Errorf("opening it: %v", err)
				}
				if reader.read != test.reads {
					t.Errorf("read %d times, want %d", reader.read, test.reads)
				}
			})
		})
	}
}

// failing is a reader that fails in one way.
type failing struct {
	moments
	err error
}

func (f *failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

func TestClusterReportsErrors(t *testing.T) {
	refused := errors.New("connection refused")
	read := func(reader client.Reader, what extent) (*publication, error) {
		return cluster{reader: reader, namespace: "cdn", name: "edge", again: publicationTime}.read(t.Context(), what)
	}
	_, err := read(&failing{err: refused}, stableRing)
	if !errors.Is(err, refused) || err.Error() != "reading ConfigMap cdn/edge-routing: connection refused" {
		t.Errorf("got %v", err)
	}
	if _, err = read(&failing{err: refused}, everything); err == nil || err.Error() != "reading HashRing cdn/edge: connection refused" {
		t.Errorf("got %v", err)
	}
	p, err := read(&failing{err: apierrors.NewNotFound(schema.GroupResource{}, "edge-routing")}, stableRing)
	if err != nil {
		t.Fatal(err)
	}
	const want = "ConfigMap cdn/edge-routing does not exist: no ring of the name edge has been published in namespace cdn"
	if _, err = p.open(); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestNewReaderAsksForNothingElse: no discovery, which is slow and needs permissions of its own.
func TestNewReaderAsksForNothingElse(t *testing.T) {
	reader, err := newReader(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	err = reader.Get(t.Context(), client.ObjectKey{Namespace: "cdn", Name: "edge-a"}, &corev1.ConfigMap{})
	if err == nil {
		t.Fatal("something answered")
	}
	wantContains(t, err.Error(), "/api/v1/namespaces/cdn/configmaps/edge-a")
}

func TestClusterFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "")
	write(t, "config", `apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: here, namespace: cdn}}
- {name: two, context: {cluster: here}}
clusters:
- {name: here, cluster: {server: "http://127.0.0.1:1"}}
`)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"the namespace of the context": {nil, "reading ConfigMap cdn/edge-routing: "},
		"the default namespace":        {[]string{"--context", "two"}, "reading ConfigMap default/edge-routing: "},
		"a namespace of its own":       {[]string{"-n", "eu"}, "reading ConfigMap eu/edge-routing: "},
		"another server":               {[]string{"--server", "http://127.0.0.1:2"}, "dial tcp 127.0.0.1:2"},
		"no such context":              {[]string{"--context", "three"}, "context was not found for specified context: three"},
	} {
		t.Run(name, func(t *testing.T) {
			wantContains(t, fail(t, ExitFailure, append(test.args, "lookup", "edge", "a", "--kubeconfig", "config")...), test.want)
		})
	}
}

func TestFlagsOfKubectlAreThereButNotAllAreShown(t *testing.T) {
	var shown []string
	cmd := newLookupCommand(noStreams)
	for _, name := range []string{"namespace", "context", "kubeconfig", "server", "as", "token", "request-timeout"} {
		flag := cmd.Flags().Lookup(name)
		if flag == nil {
			t.Fatalf("--%s is missing", name)
		}
		if !flag.Hidden {
			shown = append(shown, name)
		}
	}
	if diff := cmp.Diff([]string{"namespace", "context", "kubeconfig"}, shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
