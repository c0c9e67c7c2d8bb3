// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"errors"
	"testing"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// TestLoadedIsDown: a ring that is loaded says of each of its backends whether the routing file has it down.
func TestLoadedIsDown(t *testing.T) {
	p := published(1, addressRing(t, 3))
	dir := t.TempDir()
	mount(t, dir, p.files(t))
	c, err := ringclient.NewUnstarted(dir, ringclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, down := range []string{"", p.snapshot.ID(1), "10.9.9.9:1"} {
		if p.generation = int64(1 + i); down != "" {
			p.down = []string{down}
		}
		mount(t, dir, p.files(t))
		if err := c.LoadNow(); err != nil {
			t.Fatal(err)
		}
		loaded := c.State().Stable()
		for backend := range loaded.Ring.Len() {
			if got, want := loaded.IsDown(backend), loaded.Ring.ID(backend) == down; got != want {
				t.Errorf("with %q down, backend %d is down: %v", down, backend, got)
			}
		}
	}
}

// TestOptionRing: a client that was told its ring takes no other, not even as the first.
func TestOptionRing(t *testing.T) {
	dir := t.TempDir()
	p := published(1, addressRing(t, 3))
	mount(t, dir, p.files(t))
	var refused *ringclient.LoadError
	_, err := ringclient.Open(dir, ringclient.Options{Ring: "cdn/other"})
	if !errors.As(err, &refused) || refused.Reason != ringclient.ReasonOtherRing || refused.Value != "cdn/edge" || refused.Limit != "cdn/other" {
		t.Errorf("error %v", err)
	}
	if c := open(t, dir, ringclient.Options{Ring: "cdn/edge"}); c.State().RingName() != "cdn/edge" {
		t.Errorf("ring %s", c.State().RingName())
	}
	var option *ringclient.OptionError
	_, err = ringclient.Open(dir, ringclient.Options{Ring: "edge"})
	if !errors.As(err, &option) || option.Field != "Ring" || option.Value != `"edge"` {
		t.Errorf("error %v", err)
	}
}
