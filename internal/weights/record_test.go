// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func TestWhenARecordIsMade(t *testing.T) {
	even := Served{"a": 10000, "b": 10000}
	at25 := &v1alpha1.RolloutStatus{Percent: "25%", Digest: "d", Step: 1}
	step := "d 1 "
	for name, test := range map[string]struct {
		served Served
		record recorded
		after  time.Duration
		want   string
	}{
		"nothing is served":     {nil, recorded{}, time.Hour, ""},
		"the first":             {even, recorded{}, 0, "first weights"},
		"another step":          {even, recorded{revision: 1, served: even, step: "d 0 "}, time.Second, "rollout at 25%"},
		"nothing has changed":   {even, recorded{revision: 1, served: even, step: step}, 24 * time.Hour, ""},
		"by less than 10 %":     {Served{"a": 10999, "b": 9001}, recorded{revision: 1, served: even, step: step}, time.Hour, ""},
		"by more":               {Served{"a": 11010, "b": 10000}, recorded{revision: 1, served: even, step: step}, 10 * time.Minute, "weights changed"},
		"by more, and too soon": {Served{"a": 11010, "b": 10000}, recorded{revision: 1, served: even, step: step}, 10*time.Minute - 1, ""},
		"an endpoint came":      {Served{"a": 10000, "b": 10000, "c": 10000}, recorded{revision: 1, served: even, step: step}, time.Hour, "weights changed"},
		"of the holder before":  {even, recorded{revision: 7}, time.Hour, ""},
	} {
		h := &holding{served: test.served, record: test.record, rollout: at25}
		h.record.at = epochStart
		if got := h.recordReason(epochStart.Add(test.after)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestRevisionOf(t *testing.T) {
	for name, want := range map[string]int64{
		"checkout-weights-7": 7, "checkout-weights-123": 123, "checkout-weights-07": 0, "checkout-weights-": 0, "checkout-weights": 0, "other-weights-7": 0,
		"": 0, "7": 0, "checkout-weights-99999999999999999999": 0, "checkout-weights-7-7": 0,
	} {
		if got := revisionOf("checkout", name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// TestRecordsAreKeptAndServedAgain by the annotation that pins a policy to one.
func TestRecordsAreKeptAndServedAgain(t *testing.T) {
	c := newCluster(t, 3)
	o := c.owner("first", NewBoard())
	for i := range keptRecords + 3 {
		o.mustLook()
		h := o.holdings[key.String()]
		h.served = Served{"uid-000000": uint32(1000 * (i + 1)), "uid-000001": 10000, "uid-000002": 10000}
		c.clock.Step(recordInterval)
		if err := o.keepRecord(t.Context(), c.policy(), h); err != nil {
			t.Fatal(err)
		}
	}
	list := &appsv1.ControllerRevisionList{}
	if err := c.client.List(t.Context(), list); err != nil || len(list.Items) != keptRecords {
		t.Fatalf("%d records, %v", len(list.Items), err)
	}
	last := o.holdings[key.String()].record.revision
	next := c.owner("second", NewBoard())
	if got, err := next.lastRecord(t.Context(), key); err != nil || got.revision != last {
		t.Errorf("the next owner goes on after %d, %v; want %d", got.revision, err, last)
	}
	for value, want := range map[string]string{
		fmt.Sprint(last): "True Pinned", "1": "False RevisionNotFound", "x": "False InvalidSpec", "0": "False InvalidSpec", "-3": "False InvalidSpec",
	} {
		p := c.policy()
		p.Annotations = map[string]string{v1alpha1.AnnotationPinnedWeights: value}
		if err := c.client.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		next.mustLook()
		if got := c.ready(); got != want {
			t.Errorf("pinned to %s: Ready is %s, want %s", value, got, want)
		}
		if h := next.holdings[key.String()]; strings.HasPrefix(want, "True") && h.served["uid-000000"] != uint32(1000*(keptRecords+3)) {
			t.Errorf("revision %s is not served: %v", value, h.served)
		}
	}
}
