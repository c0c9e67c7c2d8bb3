// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"fmt"
	"testing"
	"time"
)

var epoch = time.Unix(1_800_000_000, 0).UTC()

func TestConverges(t *testing.T) {
	c, _ := Profile(ProfileBalanced)
	speed := map[string]float64{"a": 0.66, "b": 1, "c": 1.35}
	var s State
	now := epoch
	for range 12 {
		in := Input{Now: now}
		for id := range speed {
			in.Endpoints = append(in.Endpoints, Endpoint{id, true})
			w := 1.0
			for _, e := range s.Endpoints {
				if e.ID == id {
					w = e.Weight
				}
			}
			in.Reports = append(in.Reports, Report{Endpoint: id, Start: now.Add(-10 * time.Second), End: now, CPU: 0.4 * w / speed[id], InFlight: 10, Requests: 6000})
		}
		var r Result
		s, r = Update(c, s, in)
		t.Logf("%+v", r)
		s = s.Publish(now, s.Weights())
		now = now.Add(10 * time.Second)
	}
	fmt.Println(s.Endpoints)
}
