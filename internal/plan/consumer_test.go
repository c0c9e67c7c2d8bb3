// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// asked is what the consumers of these tests are asked for, with a candidate.
var asked = plan.Asked{Ring: "cdn/edge", UID: "uid-1", Generation: 41, LeaderEpoch: 7, Stable: "sha256:aa", Candidate: "sha256:bb"}

// consumer returns one that is current but for what change says.
func consumer(change func(c *plan.Consumer)) plan.Consumer {
	c := plan.Consumer{Pod: "p", Said: &plan.Answer{Ready: true, Asked: asked, Datacenter: "lab01"}}
	if change != nil {
		change(&c)
	}
	return c
}

// TestJudge: a pod is current when all that it said is right, and otherwise stale for the first reason that applies.
func TestJudge(t *testing.T) {
	for name, row := range map[string]struct {
		change func(c *plan.Consumer)
		want   string
	}{
		"current":                  {nil, ""},
		"without an address":       {func(c *plan.Consumer) { c.Waits = "no address" }, "NotReady: no address"},
		"never asked":              {func(c *plan.Consumer) { c.Said = nil }, "NotReady: it has not been asked yet"},
		"unreachable":              {func(c *plan.Consumer) { c.Failure = "no answer" }, "Unreachable: no answer"},
		"never reachable":          {func(c *plan.Consumer) { c.Failure, c.Said = "no answer", nil }, "Unreachable: no answer"},
		"without a ring":           {func(c *plan.Consumer) { c.Said = &plan.Answer{} }, "NotReady: it has no ring yet"},
		"without one, for a cause": {func(c *plan.Consumer) { c.Said = &plan.Answer{LoadError: "digest: x"} }, "LoadError: digest: x"},
		"another ring":             {func(c *plan.Consumer) { c.Said.Ring = "cdn/other" }, "OtherRing: it has the ring of HashRing cdn/other"},
		"an earlier HashRing":      {func(c *plan.Consumer) { c.Said.UID = "uid-0" }, `OtherRing: it has files of HashRing cdn/edge with UID "uid-0", not "uid-1"`},
		"files of no cluster":      {func(c *plan.Consumer) { c.Said.UID = "" }, `OtherRing: it has files of HashRing cdn/edge with UID "", not "uid-1"`},
		"older":                    {func(c *plan.Consumer) { c.Said.Generation = 40 }, "OldGeneration: it has generation 40, published is 41"},
		"older with other digests": {func(c *plan.Consumer) { c.Said.Generation, c.Said.Stable = 40, "sha256:cc" }, "OldGeneration: it has generation 40, published is 41"},
		"newer":                    {func(c *plan.Consumer) { c.Said.Generation = 42 }, "NewerGeneration: it has generation 42, published is 41"},
		"of an older leader":       {func(c *plan.Consumer) { c.Said.LeaderEpoch, c.Said.Generation = 6, 99 }, "OldGeneration: it has generation 99 of leader epoch 6, published is 41 of 7"},
		"of no leader":             {func(c *plan.Consumer) { c.Said.LeaderEpoch = 0 }, "OldGeneration: it has generation 41 of leader epoch 0, published is 41 of 7"},
		"of a newer leader":        {func(c *plan.Consumer) { c.Said.LeaderEpoch, c.Said.Generation = 8, 1 }, "NewerGeneration: it has generation 1 of leader epoch 8, published is 41 of 7"},
		"another stable ring":      {func(c *plan.Consumer) { c.Said.Stable = "sha256:cc" }, "DigestMismatch: its stable ring is sha256:cc, the published one sha256:aa"},
		"another candidate":        {func(c *plan.Consumer) { c.Said.Candidate = "sha256:cc" }, "DigestMismatch: its candidate is sha256:cc, the published one sha256:bb"},
		"no candidate":             {func(c *plan.Consumer) { c.Said.Candidate = "" }, "DigestMismatch: its candidate is none, the published one sha256:bb"},
		"forced":                   {func(c *plan.Consumer) { c.Said.Forced = "stable" }, "Overridden: it was told to use the stable ring whatever the split says"},
		"not applied":              {func(c *plan.Consumer) { c.Said.NotApplied = "nginx: x" }, "NotApplied: nginx: x"},
		"not applied, and forced":  {func(c *plan.Consumer) { c.Said.NotApplied, c.Said.Forced = "nginx: x", "stable" }, "NotApplied: nginx: x"},
		"older, and not applied":   {func(c *plan.Consumer) { c.Said.NotApplied, c.Said.Generation = "nginx: x", 40 }, "OldGeneration: it has generation 40, published is 41"},
		"cannot load":              {func(c *plan.Consumer) { c.Said.LoadError = "digest: x" }, "LoadError: digest: x"},
		"cannot load the new one":  {func(c *plan.Consumer) { c.Said.LoadError, c.Said.Generation = "digest: x", 40 }, "LoadError: digest: x"},
		"a mismatch is not hidden": {func(c *plan.Consumer) {
			c.Said.LoadError, c.Said.Forced, c.Said.Stable = "digest: x", "stable", "sha256:cc"
		}, "DigestMismatch: its stable ring is sha256:cc, the published one sha256:aa"},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := asked.Judge(consumer(row.change))
			if got := strings.TrimSuffix(string(reason)+": "+message, ": "); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	none := asked
	none.Candidate, none.LeaderEpoch = "", 0
	c := consumer(func(c *plan.Consumer) { c.Said.Asked = none })
	if reason, message := none.Judge(c); reason != "" {
		t.Errorf("without candidate and leader epoch: %s: %s", reason, message)
	}
	c.Said.Candidate = "sha256:bb"
	if reason, _ := none.Judge(c); reason != v1alpha1.StaleDigestMismatch {
		t.Errorf("with a candidate that is not published: %s", reason)
	}
}

// TestAskedBy: nothing that a consumer has to have is left out.
func TestAskedBy(t *testing.T) {
	file := routing.File{
		Ring: "cdn/edge", UID: "uid-1", Generation: 41, LeaderEpoch: 7, Stable: routing.Reference{Digest: "sha256:aa"}, Candidate: &routing.Reference{Digest: "sha256:bb"},
	}
	if diff := cmp.Diff(asked, plan.AskedBy(file)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	file.Candidate = nil
	if got := plan.AskedBy(file); got.Candidate != "" {
		t.Errorf("candidate %q", got.Candidate)
	}
}

// consumed returns a cluster whose ring has consumers, published once.
func consumed(t *testing.T) *cluster {
	s := spec(3)
	s.Consumers = &v1alpha1.Consumers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "edge"}}}
	c := newCluster(t, s)
	c.step()
	return c
}

// say makes n consumers known, p0 to pn-1, that have what is published but for what change says of each.
func (c *cluster) say(n int, change func(i int, c *plan.Consumer)) {
	c.t.Helper()
	file, err := routing.Parse([]byte(c.seen.Routing.Text))
	if err != nil {
		c.t.Fatal(err)
	}
	c.seen.Consumers = &plan.Consumers{}
	for i := range n {
		one := plan.Consumer{Pod: fmt.Sprint("p", i), Said: &plan.Answer{Ready: true, Asked: plan.AskedBy(file), Datacenter: "lab01"}}
		if change != nil {
			change(i, &one)
		}
		c.seen.Consumers.List = append(c.seen.Consumers.List, one)
	}
}

func (c *cluster) wantApplied(want string) {
	c.t.Helper()
	a := meta.FindStatusCondition(c.ring.Status.Conditions, string(v1alpha1.ConditionApplied))
	if got := fmt.Sprintf("%s/%s: %s", a.Status, a.Reason, a.Message); got != want {
		c.t.Errorf("Applied is %q, want %q", got, want)
	}
	if a.ObservedGeneration != c.ring.Generation {
		c.t.Errorf("Applied was observed at generation %d of %d", a.ObservedGeneration, c.ring.Generation)
	}
}

func TestApplied(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.wantApplied("Unknown/NoConsumersDeclared: spec.consumers says of no pods that they read the ring")

	c = consumed(t)
	c.wantApplied("False/WaitingForConsumers: the consumers have not been asked yet")
	if c.ring.Status.Consumers != nil {
		t.Errorf("consumers: %+v", c.ring.Status.Consumers)
	}
	c.say(0, nil)
	c.step()
	c.wantApplied("Unknown/NoConsumersFound: spec.consumers selects no pod")
	c.say(5, func(i int, one *plan.Consumer) {
		if i > 0 {
			one.Failure = "no answer within 2s"
		}
	})
	c.step()
	c.wantApplied("False/WaitingForConsumers: 1 of 5 consumers have routing generation 1; stale: p1 (Unreachable), p2 (Unreachable), p3 (Unreachable) and 1 more")
	c.say(5, nil)
	c.step()
	c.wantApplied("True/AllConsumersCurrent: all 5 consumers have routing generation 1")
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished", "Applied=True/AllConsumersCurrent")
	c.say(1, nil)
	c.step()
	c.wantApplied("True/AllConsumersCurrent: the one consumer has routing generation 1")
	c.say(5, func(i int, one *plan.Consumer) {
		switch i {
		case 0:
			one.Failure = "no answer within 2s"
		case 3:
			one.Said.Stable = "sha256:cc"
		}
	})
	c.step()
	c.wantApplied("False/DigestMismatch: 1 of 5 consumers have routing generation 1 with another snapshot than the published one: p3 (DigestMismatch)")
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished", "Applied=False/DigestMismatch")
	c.seen.Consumers = &plan.Consumers{Invalid: "no"}
	c.step()
	c.wantApplied("False/InvalidSelector: spec.consumers.selector: no")
	if c.ring.Status.Consumers != nil {
		t.Errorf("consumers of no selector: %+v", c.ring.Status.Consumers)
	}
}

// TestAppliedFollowsPublication: what consumers said before counts for nothing once something newer is published.
func TestAppliedFollowsPublication(t *testing.T) {
	c := consumed(t)
	c.say(2, nil)
	c.step()
	c.now = c.now.Add(1e9)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(4).Backends })
	c.step()
	c.wantConditions("Ready=True/Coalescing", "Published=False/Coalescing", "Applied=True/AllConsumersCurrent", "Reconciling=True/Coalescing")
	c.now = c.now.Add(5e9)
	if d := c.step(); d.Asked().Generation != 2 {
		t.Errorf("asked for %+v", d.Asked())
	}
	c.wantApplied("False/WaitingForConsumers: 0 of 2 consumers have routing generation 2; stale: p0 (OldGeneration), p1 (OldGeneration)")
	want := &v1alpha1.ConsumerStatus{
		Generation: 2, Total: 2, Stale: 2,
		StalePods: []v1alpha1.StalePod{
			{Name: "p0", Datacenter: "lab01", Reason: v1alpha1.StaleOldGeneration, Generation: 1, Message: "it has generation 1, published is 2"},
			{Name: "p1", Datacenter: "lab01", Reason: v1alpha1.StaleOldGeneration, Generation: 1, Message: "it has generation 1, published is 2"},
		},
		Datacenters: []v1alpha1.DatacenterConsumers{{Name: "lab01", Total: 2}},
	}
	if diff := cmp.Diff(want, c.ring.Status.Consumers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAppliedIsKept: what was known outlives a restart of the operator and a cluster that cannot be reached, but never counts for
// another generation or another selector.
func TestAppliedIsKept(t *testing.T) {
	known := func() *cluster {
		c := consumed(t)
		c.say(2, nil)
		c.step()
		c.seen.Consumers = nil
		return c
	}
	const all = "True/AllConsumersCurrent: all 2 consumers have routing generation 1"
	c := known()
	before := c.ring.Status.DeepCopy()
	c.step()
	if diff := cmp.Diff(*before, c.ring.Status); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}

	c = known()
	status := plan.Status(c.ring, plan.Decision{}, errors.New("no answer"), c.now)
	c.ring.Status = status
	c.wantApplied(all)
	if diff := cmp.Diff(before.Consumers, status.Consumers); diff != "" {
		t.Errorf("without a cluster (-want +got):\n%s", diff)
	}

	c = known()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Consumers.Port = 80 })
	c.step()
	const unasked = "False/WaitingForConsumers: spec has changed, and the consumers have not been asked since"
	c.wantApplied(unasked)
	c.step()
	c.wantApplied(unasked)
	if got := c.ring.Status.Consumers; got.Current != 2 {
		t.Errorf("figures: %+v", got)
	}

	c = known()
	c.now = c.now.Add(1e10)
	c.seen.SlotA.ContentDigest, c.ring.Status.Routing.Generation = "edited", 0 // So that routing.json is written anew.
	c.ring.Status.Routing.Digest = "sha256:00"
	c.ring.Status.Routing.Generation = 5
	c.step()
	c.wantApplied("False/WaitingForConsumers: routing generation 6 is published, and the consumers have not been asked yet")
	want := &v1alpha1.ConsumerStatus{Generation: 6, Total: 2, Stale: 2, Datacenters: []v1alpha1.DatacenterConsumers{{Name: "lab01", Total: 2}}}
	if diff := cmp.Diff(want, c.ring.Status.Consumers); diff != "" {
		t.Errorf("for another generation (-want +got):\n%s", diff)
	}

	c = known()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Consumers = nil })
	if d := c.step(); d.Asked() != nil || c.ring.Status.Consumers != nil {
		t.Errorf("without consumers: asked for %v, %+v", d.Asked(), c.ring.Status.Consumers)
	}
}

// TestAppliedOfRefusedSpec: consumers are held to what is published, whatever becomes of spec; a file that was edited asks for nothing.
func TestAppliedOfRefusedSpec(t *testing.T) {
	c := consumed(t)
	c.say(2, nil)
	c.edit(func(s *v1alpha1.HashRingSpec) {
		s.Features = []v1alpha1.Feature{{Name: "eu", Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "No"}}}}}
	})
	if d := c.step(); d.Asked() == nil || d.Asked().Generation != 1 {
		t.Errorf("asked for %+v", d.Asked())
	}
	c.wantApplied("True/AllConsumersCurrent: all 2 consumers have routing generation 1")
	if got := c.ring.Status.Consumers.Current; got != 2 {
		t.Errorf("%d are current", got)
	}
	first := newCluster(t, v1alpha1.HashRingSpec{Consumers: c.ring.Spec.Consumers})
	first.step()
	first.wantApplied("False/WaitingForConsumers: nothing is published that consumers could have")
}
