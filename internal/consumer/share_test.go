// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/internal/plan"
)

// TestShares: rings whose pods hang, or answer at the last moment, do not keep those of another one from being asked within seconds.
func TestShares(t *testing.T) {
	const hostile, hanging, healthy, timeout = 4, 400, 1000, 10 * time.Second
	for name, took := range map[string]time.Duration{"hang": timeout, "answer late": timeout - time.Millisecond, "answer slowly": slowAfter} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asking, most atomic.Int64
				p := NewPoller(Options{
					List: func(_ context.Context, namespace string, _ labels.Selector) ([]Pod, error) {
						n := hanging
						if namespace == "healthy" {
							n = healthy
						}
						list := make([]Pod, n)
						for i := range list {
							name := fmt.Sprintf("%s-%04d", namespace, i)
							list[i] = Pod{Name: name, UID: types.UID(name), IP: namespace}
						}
						return list, nil
					},
					Ask: func(ctx context.Context, ip string, _ int32, timeout time.Duration) (Answer, error) {
						wait := 10 * time.Millisecond
						if strings.HasPrefix(ip, "hostile") {
							wait = took
							now := asking.Add(1)
							defer asking.Add(-1)
							most.Store(max(most.Load(), now))
						}
						select {
						case <-ctx.Done():
							return Answer{}, ctx.Err()
						case <-time.After(wait):
						}
						if wait == timeout {
							return Answer{}, failf(failedTimeout, "no answer")
						}
						return Answer{}, nil
					},
					Changed: func(types.NamespacedName) {},
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- p.Start(ctx) }()
				follow := func(namespace string) *plan.Consumers {
					r := ring()
					r.Namespace, r.Spec.Consumers.Timeout = namespace, &metav1.Duration{Duration: timeout}
					return p.Follow(r)
				}
				for i := range hostile {
					follow(fmt.Sprint("hostile", i))
				}
				after(5 * time.Minute)
				began := time.Now()
				for follow("healthy") == nil && time.Since(began) < time.Minute {
					after(100 * time.Millisecond)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the pods that answer were all asked after %v", took)
				}
				if got := most.Load(); got > MaxAskingOfSlow || got < MaxAskingOfRing {
					t.Errorf("%d requests to those that do not, at a time", got)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if p.crowd.slow != 0 {
					t.Errorf("%d slow requests are left over", p.crowd.slow)
				}
			})
		})
	}
}

// TestShareOfOne: a ring whose pods hang has all places of a ring while nobody else needs them.
func TestShareOfOne(t *testing.T) {
	c := newCluster(400)
	c.say(0, 400, 0)
	testPoller(t, c, func(p *Poller) {
		p.Follow(ring())
		after(5 * time.Second)
		c.mu.Lock()
		most := c.most
		c.mu.Unlock()
		if most != MaxAskingOfRing {
			t.Errorf("%d requests at a time", most)
		}
		after(30 * time.Second)
		wantCurrent(t, p.Follow(ring()), 1, 0, 400)
	})
}

func TestAdmit(t *testing.T) {
	for name, row := range map[string]struct {
		slow, asking, share int
		wantSlow, want      bool
	}{
		"full share":                  {MaxAskingOfSlow, MaxAskingOfRing - 1, MaxAskingOfRing, false, true},
		"full share in use":           {0, MaxAskingOfRing, MaxAskingOfRing, false, false},
		"calm":                        {calm - 1, MaxAskingOfRing - 1, 1, true, true},
		"calm, all of a ring":         {0, MaxAskingOfRing, 1, false, false},
		"crowded, within its share":   {calm, 3, 4, true, true},
		"crowded, beyond its share":   {calm, 4, 4, true, false},
		"no place for any slow one":   {MaxAskingOfSlow, 0, 4, true, false},
		"the last place for slow one": {MaxAskingOfSlow - 1, 0, 1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := crowd{slow: row.slow}
			if slow, admitted := c.admit(row.asking, row.share); admitted != row.want || admitted && slow != row.wantSlow {
				t.Errorf("slow %v, admitted %v", slow, admitted)
			}
		})
	}
}
