// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// replicas are some of one balancer, on one API server and one clock.
type replicas struct {
	clock  *clocktesting.FakeClock
	client client.Client
	// broken has every request fail.
	broken bool
	shards map[string]*Shards
}

func newReplicas(t *testing.T, names ...string) *replicas {
	t.Helper()
	r := &replicas{clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), shards: map[string]*Shards{}}
	r.client = fake.NewClientBuilder().Build()
	for _, name := range names {
		r.shards[name] = New(Options{Client: r.clientOf(name), Namespace: "system", Self: Member{Name: name, Address: name + ":7000"}, Clock: r.clock})
	}
	return r
}

// clientOf returns the API server as a replica sees it, which cannot be reached by "cut" while r is broken.
func (r *replicas) clientOf(name string) client.Client {
	return interceptor.NewClient(r.client.(client.WithWatch), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if r.broken && name == "cut" {
				return fmt.Errorf("the API server is away")
			}
			return c.Update(ctx, o, opts...)
		},
	})
}

// round has each of the replicas renew and read twice, so that the first one has seen the last one.
func (r *replicas) round(t *testing.T, names ...string) {
	t.Helper()
	for range 2 {
		for _, name := range names {
			if err := r.shards[name].round(t.Context()); err != nil && !r.broken {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// owned returns the policies of 300 that each replica owns.
func (r *replicas) owned() map[string]map[string]bool {
	owned := map[string]map[string]bool{}
	for name, s := range r.shards {
		owned[name] = map[string]bool{}
		for i := range 300 {
			if policy := fmt.Sprintf("shop/policy-%d", i); s.Owns(policy) {
				owned[name][policy] = true
			}
		}
	}
	return owned
}

func TestEveryPolicyHasOneOwner(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	r.round(t, "a", "b", "c")
	counts := map[string]int{}
	for name, policies := range r.owned() {
		if len(policies) < 60 {
			t.Errorf("%s owns %d of 300 policies, want about 100", name, len(policies))
		}
		for policy := range policies {
			counts[policy]++
			if owner, ok := r.shards["a"].Owner(policy); !ok || owner != (Member{Name: name, Address: name + ":7000"}) {
				t.Errorf("a says that %v owns %s; %s does", owner, policy, name)
			}
		}
	}
	if len(counts) != 300 {
		t.Errorf("%d of 300 policies have an owner", len(counts))
	}
	for policy, n := range counts {
		if n != 1 {
			t.Errorf("%s has %d owners", policy, n)
		}
	}
}

func TestAReplicaThatDiesIsReplacedAndMovesOnlyItsOwn(t *testing.T) {
	r := newReplicas(t, "a", "b", "c")
	r.round(t, "a", "b", "c")
	before := r.owned()
	for range 6 { // c says nothing for 18 s.
		r.clock.Step(RenewInterval)
		r.round(t, "a", "b")
	}
	after := r.owned()
	if len(after["a"])+len(after["b"]) != 300 {
		t.Errorf("a and b own %d and %d of 300 policies", len(after["a"]), len(after["b"]))
	}
	if len(after["c"]) != 0 {
		t.Errorf("c, which has not renewed for 18 s, still believes that it owns %d policies", len(after["c"]))
	}
	for _, name := range []string{"a", "b"} {
		for policy := range before[name] {
			if !after[name][policy] {
				t.Errorf("%s lost %s, which was not c's", name, policy)
			}
		}
	}
}

func TestAReplicaThatCannotRenewGivesUpBeforeOthersTakeOver(t *testing.T) {
	r := newReplicas(t, "a", "cut")
	r.round(t, "a", "cut")
	if n := len(r.owned()["cut"]); n == 0 {
		t.Fatal("cut owns nothing to begin with")
	}
	r.broken = true
	gaveUp, tookOver := time.Duration(0), time.Duration(0)
	for elapsed := time.Duration(0); elapsed < 2*LeaseDuration; elapsed += time.Second {
		r.clock.Step(time.Second)
		r.round(t, "a", "cut")
		owned := r.owned()
		if gaveUp == 0 && len(owned["cut"]) == 0 {
			gaveUp = elapsed
		}
		if tookOver == 0 && len(owned["a"]) == 300 {
			tookOver = elapsed
		}
	}
	if gaveUp == 0 || tookOver == 0 || gaveUp >= tookOver || tookOver > LeaseDuration+RenewInterval {
		t.Errorf("cut gave up after %v and a took over after %v; want that before this, within %v", gaveUp, tookOver, LeaseDuration+RenewInterval)
	}
}

func TestClocksOfOthersAreNotTrusted(t *testing.T) {
	r := newReplicas(t, "a", "b")
	r.shards["b"].o.Clock = clocktesting.NewFakeClock(time.Unix(1_000_000_000, 0)) // 25 years behind.
	r.round(t, "a", "b")
	if got := r.shards["a"].Members(); len(got) != 2 {
		t.Errorf("a sees %v", got)
	}
}

func TestReleaseTellsTheOthersAtOnce(t *testing.T) {
	r := newReplicas(t, "a", "b")
	told := 0
	r.shards["a"].OnChange(func() { told++ })
	r.round(t, "a", "b")
	if err := r.shards["b"].release(); err != nil {
		t.Fatal(err)
	}
	r.round(t, "a")
	if diff := cmp.Diff([]Member{{Name: "a", Address: "a:7000"}}, r.shards["a"].Members()); diff != "" {
		t.Error(diff)
	}
	if told != 3 { // a alone, then with b, then alone.
		t.Errorf("a was told of %d changes, want 3", told)
	}
	leases := &coordinationv1.LeaseList{}
	if err := r.client.List(t.Context(), leases); err != nil || len(leases.Items) != 1 {
		t.Errorf("%d Leases are left, %v", len(leases.Items), err)
	}
}

func TestAReplicaWithoutANameOnlyAsks(t *testing.T) {
	r := newReplicas(t, "a", "")
	r.round(t, "a", "")
	if r.shards[""].Owns("shop/policy-1") {
		t.Error("it owns a policy")
	}
	if owner, ok := r.shards[""].Owner("shop/policy-1"); !ok || owner.Name != "a" {
		t.Errorf("it sees %v, %v as the owner", owner, ok)
	}
}

func TestNobodyOwnsBeforeTheLeasesAreRead(t *testing.T) {
	r := newReplicas(t, "a")
	if _, ok := r.shards["a"].Owner("shop/policy-1"); ok || r.shards["a"].Owns("shop/policy-1") || r.shards["a"].Synced() {
		t.Error("an owner is known before anything was read")
	}
}

func TestTheLeaseOfAReplicaThatDiedLongAgoIsDeleted(t *testing.T) {
	r := newReplicas(t, "a", "dead")
	r.round(t, "a", "dead")
	for r.clock.Since(time.Unix(1_800_000_000, 0)) < buriedAfter*LeaseDuration-RenewInterval {
		r.clock.Step(RenewInterval)
		r.round(t, "a")
	}
	leases := &coordinationv1.LeaseList{}
	if err := r.client.List(t.Context(), leases); err != nil || len(leases.Items) != 2 {
		t.Errorf("%d Leases are there before the time, %v; want 2", len(leases.Items), err)
	}
	r.clock.Step(RenewInterval)
	r.round(t, "a")
	if err := r.client.List(t.Context(), leases); err != nil || len(leases.Items) != 1 || leases.Items[0].Name != leaseName("a") {
		t.Errorf("%d Leases are left, %v; want that of a alone", len(leases.Items), err)
	}
	r.round(t, "dead") // It was only asleep.
	if got := r.shards["dead"].Members(); len(got) != 2 {
		t.Errorf("after waking up it sees %v", got)
	}
}
