// SPDX-License-Identifier: Apache-2.0

package migrationapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// file is generation 9 of epoch 2.
func file() routing.File {
	return routing.File{
		Ring: "cdn/edge", UID: "u", Generation: 9, LeaderEpoch: 2, Stable: routing.NewReference(routing.SlotA, "old", "V1", 1),
		Candidate: &routing.Reference{Digest: "new"}, Split: &routing.Split{Seed: 7, BasisPoints: map[string]int{"lab01": 500}},
	}
}

func says(pod, datacenter string, change func(*plan.Answer)) plan.Consumer {
	answer := &plan.Answer{Datacenter: datacenter, Ready: true, Asked: plan.AskedBy(file())}
	if change != nil {
		change(answer)
	}
	return plan.Consumer{Pod: pod, Said: answer}
}

func generation(epoch, generation int64) func(*plan.Answer) {
	return func(a *plan.Answer) { a.LeaderEpoch, a.Generation = epoch, generation }
}

// TestFleets: who has the split of generation 7, whichever addresses came after it, has it; who has one before, or one that is not
// published, has not.
func TestFleets(t *testing.T) {
	unreachable := says("p-3", "lab01", nil)
	unreachable.Failure = "timeout"
	list := []plan.Consumer{
		says("p-0", "lab01", nil), says("p-1", "lab01", generation(2, 7)), says("p-2", "lab01", generation(2, 6)), unreachable,
		says("p-4", "lab01", generation(1, 99)), says("p-5", "lab01", generation(2, 10)), says("p-6", "lab01", generation(3, 1)),
		says("p-7", "ams01", func(a *plan.Answer) { a.Candidate = "" }), says("p-8", "ams01", func(a *plan.Answer) { a.Forced = "stable" }),
		says("p-9", "ams01", func(a *plan.Answer) { a.NotApplied = "nginx" }),
		says("q-0", "ams01", func(a *plan.Answer) { a.Generation, a.Candidate = 7, "other" }),
		{Pod: "q-1", Waits: "it has no address yet"},
	}
	since := migration.Version{Epoch: 2, Generation: 7}
	want := []migration.Fleet{
		{Ring: "edge", Version: since, Total: 1, Stale: []string{"q-1 (NotReady)"}},
		{Ring: "edge", Datacenter: "ams01", Version: since, Total: 4, Reachable: 4, Stale: []string{
			"p-7 (DigestMismatch)", "p-8 (Overridden)", "p-9 (NotApplied)", "q-0 (DigestMismatch)",
		}},
		{Ring: "edge", Datacenter: "lab01", Version: since, Total: 7, Reachable: 6, Current: 2, Stale: []string{
			"p-2 (OldGeneration)", "p-3 (Unreachable)", "p-4 (OldGeneration)", "p-5 (NewerGeneration)", "p-6 (NewerGeneration)",
		}},
	}
	if diff := cmp.Diff(want, migrationapi.Fleets("edge", file(), since, list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fleets := migrationapi.Fleets("edge", file(), migration.Version{}, list)
	if got := fleets[2]; got.Current != 1 || got.Version != (migration.Version{Epoch: 2, Generation: 9}) {
		t.Errorf("where the version is not known, %d are current, judged by %v", got.Current, got.Version)
	}
}

// TestFleetsAcrossEpochs: a new leader's file follows that of the one before.
func TestFleetsAcrossEpochs(t *testing.T) {
	list := []plan.Consumer{says("p-0", "lab01", generation(1, 40)), says("p-1", "lab01", generation(1, 39)), says("p-2", "lab01", generation(2, 1))}
	got := migrationapi.Fleets("edge", file(), migration.Version{Epoch: 1, Generation: 40}, list)
	if got[0].Current != 2 || len(got[0].Stale) != 1 || got[0].Stale[0] != "p-1 (OldGeneration)" {
		t.Errorf("the fleet is %+v", got[0])
	}
}

func TestPublished(t *testing.T) {
	want := migration.Published{Version: migration.Version{Epoch: 2, Generation: 9}, Stable: "old", Candidate: "new", Seed: 7, Split: migration.Split{"lab01": 500}}
	if diff := cmp.Diff(want, migrationapi.Published(file())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	alone := file()
	alone.Candidate, alone.Split = nil, nil
	if got := migrationapi.Published(alone); got.Candidate != "" || got.Split != nil || got.Stable != "old" {
		t.Errorf("it is %+v", got)
	}
}
