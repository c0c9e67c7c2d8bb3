// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// TestAConflictGivesNothingUp: somebody edits the policy while its status is written.
func TestAConflictGivesNothingUp(t *testing.T) {
	c := newCluster(t, 3)
	o := c.owner("first", NewBoard())
	o.mustLook()
	held := o.holdings[key.String()]
	for what, kind := range map[string]string{"status": "status *v1alpha1.WeightPolicy"} {
		c.fail = func(verb string, object client.Object) error {
			if fmt.Sprintf("%s %T", verb, object) == kind {
				return apierrors.NewConflict(schema.GroupResource{Resource: "weightpolicies"}, "checkout", nil)
			}
			return nil
		}
		c.clock.Step(statusInterval)
		result, err := o.look()
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
			t.Errorf("%s: %v, %v", what, result, err)
		}
	}
	if o.holdings[key.String()] != held || c.sets()[0].Epoch != 1 {
		t.Errorf("the policy was given up: epoch %d", c.sets()[0].Epoch)
	}
}

// TestWeightsGoOnWithoutWrites: what is served does not wait for the API server.
func TestWeightsGoOnWithoutWrites(t *testing.T) {
	c := newCluster(t, 12)
	board := NewBoard()
	o := c.owner("first", board)
	o.mustLook()
	version := o.holdings[key.String()].version
	c.fail = func(string, client.Object) error { return fmt.Errorf("etcd is full") }
	failed := 0
	for range 12 {
		if _, err := o.look(); err != nil {
			failed++
		}
	}
	if a, _ := board.Get(key.String()); a.Version < version+3 {
		t.Errorf("version %d is served after 12 looks, it was %d", a.Version, version)
	}
	if failed == 0 {
		t.Error("no look says that nothing can be written")
	}
}

func TestStatusIsNotWrittenAllTheTime(t *testing.T) {
	c := newCluster(t, 12, bySteps)
	o := c.owner("first", NewBoard())
	for range 60 {
		o.mustLook()
	}
	c.writes = map[string]int{}
	for range 18 { // 180 s
		o.mustLook()
		c.clock.Step(-9 * time.Second)
		o.mustLook() // An event between.
		c.clock.Step(-time.Second)
	}
	if n := c.writes["status *v1alpha1.WeightPolicy"]; n > 7 {
		t.Errorf("%d writes of status in 180 s", n)
	}
	if n := c.writes["update *v1alpha1.WeightSet"]; n > 4 {
		t.Errorf("%d writes of the WeightSet in 180 s", n)
	}
}

// TestAConfigMapOfSomebodyElse: it is said and stays said, and weights go on at their pace.
func TestAConfigMapOfSomebodyElse(t *testing.T) {
	c := newCluster(t, 12, func(p *v1alpha1.WeightPolicy) {
		p.Spec.Publish.ConfigMap = &v1alpha1.ConfigMapPublication{Name: "file"}
	})
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "file"}, Data: map[string]string{"mine": "1"}}
	if err := c.client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	o := c.owner("first", NewBoard())
	for i := range 9 {
		result, err := o.look()
		if err != nil || result.RequeueAfter > 10*time.Second {
			t.Fatalf("%v, %v", result, err)
		}
		if got := c.ready(); got != "False NameConflict" {
			t.Fatalf("after look %d Ready is %s", i, got)
		}
	}
	if err := c.client.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		o.mustLook()
	}
	if got := c.ready(); got != "True WeightsServed" {
		t.Errorf("once it is away Ready is %s", got)
	}
}

// TestAConfigMapThatIsNotAskedForAnyMore is deleted, so that nobody reads weights that nobody writes.
func TestAConfigMapThatIsNotAskedForAnyMore(t *testing.T) {
	c := newCluster(t, 3, func(p *v1alpha1.WeightPolicy) { p.Spec.Publish.ConfigMap = &v1alpha1.ConfigMapPublication{Name: "old"} })
	o := c.owner("first", NewBoard())
	o.mustLook()
	names := func() []string {
		list := &corev1.ConfigMapList{}
		if err := c.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, cm := range list.Items {
			names = append(names, cm.Name)
		}
		return names
	}
	for _, test := range []struct {
		name string
		want []string
	}{{"old", []string{"old"}}, {"new", []string{"new"}}, {"", nil}} {
		p := c.policy()
		p.Spec.Publish.ConfigMap = nil
		if test.name != "" {
			p.Spec.Publish.ConfigMap = &v1alpha1.ConfigMapPublication{Name: test.name}
		}
		if err := c.client.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		o = c.owner("next", NewBoard()) // Another owner knows as well.
		o.mustLook()
		if diff := cmp.Diff(test.want, names()); diff != "" {
			t.Error(diff)
		}
		if got := c.sets()[0].Annotations[annotationConfigMap]; got != test.name {
			t.Errorf("the WeightSet names %q, want %q", got, test.name)
		}
	}
}
