// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// waitFor runs "migration wait" on a migration that does not change, and returns the exit code and what was said.
func waitFor(t *testing.T, m *v1alpha1.RingMigration, target string, throughHolds bool) (int, string) {
	t.Helper()
	p, err := parsePoint(target)
	if err != nil {
		t.Fatal(err)
	}
	streams, out, errOut := ioOf("")
	code := 0
	synctest.Test(t, func(t *testing.T) {
		o := &migrationWaitOptions{streams: streams, timeout: time.Minute, throughHolds: throughHolds}
		code = report(errOut, o.run(t.Context(), storeOf(t, interceptor.Funcs{}, m), p))
	})
	return code, out.String() + errOut.String()
}

func TestMigrationWait(t *testing.T) {
	outdated := func(m *v1alpha1.RingMigration) { m.Generation++ }
	for name, test := range map[string]struct {
		m       *v1alpha1.RingMigration
		target  string
		through bool
		code    int
		want    string
	}{
		"succeeded":                {soaking(t, succeeded), "succeeded", false, ExitOK, "RingMigration cdn/v1-to-v3 is at what was waited for: succeeded.\n"},
		"a step that is passed":    {soaking(t), "step=validation/2", false, ExitOK, "step=validation/2"},
		"the step that it is at":   {soaking(t), "step=europe/1", false, ExitTimedOut, "is not at step=europe/1 after 1m0s: it is Shifting, Soaking at europe 1/3"},
		"a step that is to come":   {soaking(t), "step=europe/2", false, ExitTimedOut, ""},
		"a phase":                  {soaking(t), "phase=shifting", false, ExitOK, "phase=Shifting"},
		"another phase":            {soaking(t), "phase=Soaking", false, ExitTimedOut, ""},
		"no hold":                  {soaking(t), "held", false, ExitTimedOut, ""},
		"a hold":                   {soaking(t, held(hold("NotConverged", "11:00:00", ""))), "held", false, ExitOK, ""},
		"a hold that ends":         {soaking(t, held(hold("NotConverged", "11:00:00", ""))), "succeeded", false, ExitTimedOut, ""},
		"a person":                 {soaking(t, awaiting), "succeeded", false, ExitHeld, "held by AwaitingApproval (token 1.1.2-6), which only a person can end: whoever may approve"},
		"a person, waited for":     {soaking(t, awaiting), "succeeded", true, ExitTimedOut, ""},
		"rolled back":              {soaking(t, rolledBack), "succeeded", true, ExitRolledBack, "is RolledBack: GateFailed connect-errors failed"},
		"rolled back, as wanted":   {soaking(t, rolledBack), "rolled-back", false, ExitOK, ""},
		"a step of what was there": {soaking(t, rolledBack), "step=validation/1", false, ExitRolledBack, ""},
		"no rollback any more":     {soaking(t, succeeded), "rolled-back", false, ExitEnded, "does not come any more"},
		"an earlier spec":          {soaking(t, rolledBack, outdated), "succeeded", false, ExitTimedOut, ""},
		"an earlier success":       {soaking(t, succeeded, outdated), "succeeded", false, ExitTimedOut, ""},
		"no such stage":            {soaking(t), "step=asia/1", false, ExitFailure, `there is no stage "asia": it has validation, europe, world`},
		"no such step":             {soaking(t), "step=europe/4", false, ExitFailure, "stage europe has no step 4: it has 3 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := waitFor(t, test.m, test.target, test.through)
			if code != test.code {
				t.Errorf("exit code %d, want %d: %s", code, test.code, text)
			}
			wantContains(t, text, test.want)
		})
	}
}

// TestMigrationWaitSeesChanges, a deletion among them.
func TestMigrationWaitSeesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, _, _ := ioOf("")
		live := storeOf(t, interceptor.Funcs{}, soaking(t))
		o := &migrationWaitOptions{streams: streams, timeout: time.Hour}
		done := make(chan error, 2)
		for _, target := range []pointKind{pointSucceeded, pointRolledBack} {
			go func() { done <- o.run(t.Context(), live, point{kind: target}) }()
		}
		synctest.Wait()
		setStatus(t, live, soaking(t, rolledBack).Status)
		var coded *codeError
		for range 2 {
			if err := <-done; err != nil && (!errors.As(err, &coded) || coded.code != ExitRolledBack) {
				t.Error(err)
			}
		}
		if coded == nil {
			t.Error("both have what they waited for")
		}
		go func() { done <- o.run(t.Context(), live, point{kind: pointHeld}) }()
		synctest.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		streams, _, _ := ioOf("")
		live := storeOf(t, interceptor.Funcs{}, soaking(t))
		done := make(chan error, 1)
		go func() {
			done <- (&migrationWaitOptions{streams: streams, timeout: time.Hour}).run(t.Context(), live, point{kind: pointSucceeded})
		}()
		synctest.Wait()
		if err := live.client.Delete(t.Context(), soaking(t)); err != nil {
			t.Fatal(err)
		}
		var coded *codeError
		if err := <-done; !errors.As(err, &coded) || coded.code != ExitEnded {
			t.Errorf("after a deletion: %v", err)
		}
	})
}

func TestMigrationWaitUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"--for: nothing is given: it must be succeeded, rolled-back, step=STAGE/N, phase=PHASE or held": {"m"},
		`--for: "done" is not known: it must be succeeded`:                                              {"m", "--for", "done"},
		`--for: "succeeded=x" is not known`:                                                             {"m", "--for", "succeeded=x"},
		`--for: "step=europe" is no step: it must be step=STAGE/N, such as step=europe/2`:               {"m", "--for", "step=europe"},
		`--for: "step=europe/0" is no step`:                                                             {"m", "--for", "step=europe/0"},
		`--for: "step=/1" is no step`:                                                                   {"m", "--for", "step=/1"},
		`--for: "Stuck" is no phase: it must be one of Pending, Queued, Preparing, Shifting`:            {"m", "--for", "phase=Stuck"},
		"--timeout is 0s, it must be more than 0":                                                       {"m", "--for", "held", "--timeout", "0s"},
		"no migration given: name a RingMigration":                                                      {"--for", "held"},
		`unexpected argument "n"`:                                                                       {"m", "n", "--for", "held"},
	} {
		wantContains(t, fail(t, ExitUsage, append([]string{"migration", "wait"}, args...)...), want)
	}
}
