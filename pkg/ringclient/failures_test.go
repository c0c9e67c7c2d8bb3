// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// pick returns the identity of the backend for a key, and whether the owner was passed over.
func pick(t *testing.T, c *ringclient.Client, key string) (string, bool) {
	t.Helper()
	d, err := c.Pick([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return d.ID(), d.Failover()
}

// TestReportedBackendsArePassedOver for as long as was said, or until they serve again.
func TestReportedBackendsArePassedOver(t *testing.T) {
	r := addressRing(t, 9)
	dir := t.TempDir()
	mount(t, dir, published(1, r).files(t))
	order := owners(t, r, "key", 3)
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir, ringclient.Options{PollOnly: true})
		expect := func(when, id string, failover bool, failed int) {
			t.Helper()
			if got, over := pick(t, c, "key"); got != id || over != failover || c.Stats().Failed != failed {
				t.Errorf("%s: %s, failover %v, %d failed; want %s, %v, %d", when, got, over, c.Stats().Failed, id, failover, failed)
			}
		}
		expect("at first", order[0], false, 0)
		if !c.ReportFailed(order[0], time.Second) || !c.ReportFailed(order[1], 3*time.Second) {
			t.Fatal("a report has no effect")
		}
		expect("both reported", order[2], true, 2)
		if got, err := c.Lookup([]byte("key"), nil, 2); err != nil || got[0].ID() != order[2] || !got[1].Failover() {
			t.Errorf("two owners: %v, %v", ids(got), err)
		}
		wait(time.Second - 1)
		expect("just before the first is due", order[2], true, 2)
		wait(1)
		expect("when the first is due", order[0], false, 1)
		c.ReportFailed(order[0], time.Hour)
		expect("reported again", order[2], true, 2)
		c.ReportServing(order[0])
		c.ReportServing("nobody")
		expect("the first serves", order[0], false, 1)
		wait(2 * time.Second)
		expect("all are due", order[0], false, 0)
		c.ReportServing(order[0])
		if stats := c.Stats(); stats.Failovers != 4 {
			t.Errorf("%d failovers were counted, want 4", stats.Failovers)
		}
	})
}

// TestAllReportedIsNobodyReported: a program whose own network is gone must not be left without an answer.
func TestAllReportedIsNobodyReported(t *testing.T) {
	r := addressRing(t, 3)
	dir := t.TempDir()
	p := published(1, r)
	p.down = []string{"10.0.0.1:8080"}
	mount(t, dir, p.files(t))
	c := open(t, dir, ringclient.Options{})
	for _, id := range []string{"10.0.0.2:8080", "10.0.0.3:8080"} {
		if !c.ReportFailed(id, time.Minute) {
			t.Errorf("the report of %s has no effect", id)
		}
	}
	if got, over := pick(t, c, "key"); got != owners(t, r, "key", 1)[0] || over {
		t.Errorf("%s, failover %v", got, over)
	}
}

func TestReportLimits(t *testing.T) {
	config := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1}, Identity: ring.IdentityName}
	addresses := map[string]string{}
	for i := range ringclient.MaxFailed + 1 {
		name := fmt.Sprintf("n%04d", i)
		config.Backends = append(config.Backends, ring.Backend{ID: name, Weight: 1})
		addresses[name] = "10.0.0.1:80"
	}
	p := published(1, build(t, config))
	p.addresses = addresses
	dir := t.TempDir()
	mount(t, dir, p.files(t))
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir, ringclient.Options{PollOnly: true})
		for what, effect := range map[string]bool{
			"nobody":    c.ReportFailed("nobody", time.Second),
			"no time":   c.ReportFailed("n0000", 0),
			"less time": c.ReportFailed("n0000", -1),
		} {
			if effect {
				t.Errorf("a report of %s has an effect", what)
			}
		}
		c.ReportFailed("n0000", 2*ringclient.MaxPassOver)
		wait(ringclient.MaxPassOver)
		if n := c.Stats().Failed; n != 0 {
			t.Errorf("%d are passed over for longer than %v", n, ringclient.MaxPassOver)
		}
		for i := range ringclient.MaxFailed {
			if !c.ReportFailed(config.Backends[i].ID, time.Minute) {
				t.Fatalf("report %d has no effect", i)
			}
		}
		if c.ReportFailed(config.Backends[ringclient.MaxFailed].ID, time.Minute) || c.Stats().Failed != ringclient.MaxFailed {
			t.Errorf("%d are passed over, the limit is %d", c.Stats().Failed, ringclient.MaxFailed)
		}
		if !c.ReportFailed("n0000", time.Minute) {
			t.Error("one that is passed over already cannot be reported again")
		}
	})
}

func TestReportWithoutRing(t *testing.T) {
	c, err := ringclient.NewUnstarted(t.TempDir(), ringclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.ReportFailed("anybody", time.Second) {
		t.Error("a report has an effect")
	}
	c.ReportServing("anybody")
}
