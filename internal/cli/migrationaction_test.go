// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// asked is a command about an action, and what became of it.
type asked struct {
	code        int
	out, errOut string
	actions     []v1alpha1.RingMigrationAction
}

// actionOf runs a verb. Answer, where it is not nil, is what the operator says to the action.
func actionOf(t *testing.T, verb, stdin string, hooks interceptor.Funcs, m *v1alpha1.RingMigration, answer *v1alpha1.RingMigrationActionStatus, change func(*migrationActionOptions)) asked {
	t.Helper()
	var result asked
	synctest.Test(t, func(t *testing.T) {
		streams, out, errOut := ioOf(stdin)
		var objects []client.Object
		if m != nil {
			objects = append(objects, m)
		}
		live := storeOf(t, hooks, objects...)
		o := &migrationActionOptions{streams: streams, wait: true, timeout: time.Minute}
		for _, a := range migrationActions {
			if a.verb == verb {
				o.migrationAction = a
			}
		}
		if change != nil {
			change(o)
		}
		done := make(chan int, 1)
		go func() { done <- report(errOut, o.run(t.Context(), live)) }()
		synctest.Wait()
		list := &v1alpha1.RingMigrationActionList{}
		if err := live.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 1 && answer != nil {
			list.Items[0].Status = *answer
			if err := live.client.Status().Update(t.Context(), &list.Items[0]); err != nil {
				t.Fatal(err)
			}
		}
		result = asked{code: <-done, out: out.String(), errOut: errOut.String(), actions: list.Items}
	})
	return result
}

var accepted = &v1alpha1.RingMigrationActionStatus{Phase: v1alpha1.ActionAccepted}

func yes(o *migrationActionOptions) { o.yes, o.reason = true, "as seen on the dashboard" }

// TestMigrationActions: each verb creates the action of its type, for the step that is shown, by the user whom the API server names.
func TestMigrationActions(t *testing.T) {
	types := map[string]v1alpha1.ActionType{
		"approve": "Approve", "reject": "Reject", "pause": "Pause", "resume": "Resume", "rollback": "Rollback", "retry": "Retry", "skip": "Skip",
	}
	for verb, want := range types {
		t.Run(verb, func(t *testing.T) {
			got := actionOf(t, verb, "", interceptor.Funcs{}, soaking(t), accepted, yes)
			if got.code != ExitOK || got.errOut != "" || len(got.actions) != 1 {
				t.Fatalf("exit code %d, %d actions\n%s%s", got.code, len(got.actions), got.out, got.errOut)
			}
			spec := v1alpha1.RingMigrationActionSpec{
				MigrationRef: v1alpha1.RingMigrationReference{Name: "v1-to-v3"}, Type: want,
				Step:  &v1alpha1.ActionStep{Name: "europe 1/3", Token: "1.2.1-7"},
				Actor: v1alpha1.ActionActor{Username: "ann@example.com"}, Reason: "as seen on the dashboard",
			}
			if diff := cmp.Diff(spec, got.actions[0].Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if a := got.actions[0]; a.GenerateName != "v1-to-v3-"+verb+"-" || a.Namespace != "cdn" {
				t.Errorf("generateName %s in %s", a.GenerateName, a.Namespace)
			}
			wantContains(t, got.out, "\nAccepted. ")
			wantContains(t, got.out, "\nWatch it: kubectl hashring migration status v1-to-v3 -n cdn --watch\n")
		})
	}
	if len(types) != len(migrationActions) {
		t.Errorf("%d verbs, not %d", len(migrationActions), len(types))
	}
}

func TestMigrationActionIsConfirmed(t *testing.T) {
	terminal := func(o *migrationActionOptions) { o.terminal = true }
	for answer, created := range map[string]int{"y\n": 1, "YES\n": 1, "n\n": 0, "\n": 0, "": 0, "yesterday\n": 0} {
		got := actionOf(t, "approve", answer, interceptor.Funcs{}, soaking(t, awaiting), accepted, terminal)
		if len(got.actions) != created || (got.code == ExitOK) != (created == 1) {
			t.Errorf("%q: exit code %d, %d actions", answer, got.code, len(got.actions))
		}
		wantContains(t, got.out, "Approve RingMigration cdn/v1-to-v3 at validation 2/2, token 1.1.2-6: this lets the step that awaits approval go on.\nGo on? [y/N] ")
	}
	got := actionOf(t, "approve", "y\n", interceptor.Funcs{}, soaking(t, awaiting), accepted, nil)
	if got.code != ExitFailure || len(got.actions) != 0 {
		t.Errorf("without a terminal: exit code %d, %d actions", got.code, len(got.actions))
	}
	wantContains(t, got.errOut, "approve has to be confirmed: --yes does that where nobody can be asked. It would: Approve RingMigration cdn/v1-to-v3 at validation 2/2, token 1.1.2-6\n")
	for _, verb := range []string{"pause", "resume", "rollback"} {
		if got := actionOf(t, verb, "", interceptor.Funcs{}, soaking(t), accepted, nil); got.code != ExitOK {
			t.Errorf("%s asks: %s", verb, got.errOut)
		}
	}
}

// TestMigrationActionPinsWhatWasSeen: with a token nothing is done at another step.
func TestMigrationActionPinsWhatWasSeen(t *testing.T) {
	pinned := func(token string) func(*migrationActionOptions) {
		return func(o *migrationActionOptions) { o.yes, o.token = true, token }
	}
	if got := actionOf(t, "skip", "", interceptor.Funcs{}, soaking(t), accepted, pinned("1.2.1-7")); got.code != ExitOK {
		t.Error(got.errOut)
	}
	got := actionOf(t, "skip", "", interceptor.Funcs{}, soaking(t), accepted, pinned("1.1.2-6"))
	if got.code != ExitFailure || len(got.actions) != 0 {
		t.Errorf("exit code %d, %d actions", got.code, len(got.actions))
	}
	wantContains(t, got.errOut, "is at europe 1/3 with token 1.2.1-7 by now, not at the step of token 1.1.2-6: look at it again before you skip")
	got = actionOf(t, "rollback", "", interceptor.Funcs{}, soaking(t), accepted, pinned("1.1.2-6"))
	if got.code != ExitOK || got.actions[0].Spec.Step.Token != "1.1.2-6" {
		t.Errorf("a rollback judges no token itself: %s", got.errOut)
	}
	got = actionOf(t, "approve", "", interceptor.Funcs{}, soaking(t, func(m *v1alpha1.RingMigration) { m.Status = v1alpha1.RingMigrationStatus{} }), accepted, yes)
	wantContains(t, got.errOut, "has no token yet: the operator has not looked at it, so there is nothing to approve")
}

// TestMigrationRollbackNeedsNoStatus: nobody who may roll back is stopped by what he may not read.
func TestMigrationRollbackNeedsNoStatus(t *testing.T) {
	unread := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if _, ok := o.(*v1alpha1.RingMigration); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "ringmigrations"}, key.Name, errors.New("ann cannot get"))
		}
		return c.Get(ctx, key, o, options...)
	}}
	for _, verb := range []string{"rollback", "pause"} {
		got := actionOf(t, verb, "", unread, soaking(t), accepted, nil)
		if got.code != ExitOK || len(got.actions) != 1 || got.actions[0].Spec.Step != nil {
			t.Errorf("%s: exit code %d, %+v\n%s", verb, got.code, got.actions, got.errOut)
		}
		wantContains(t, got.errOut, "ann cannot get: the action goes without the token of a step\n")
	}
	got := actionOf(t, "approve", "", unread, soaking(t), accepted, yes)
	if got.code != ExitFailure || len(got.actions) != 0 {
		t.Errorf("an approval without a step: exit code %d", got.code)
	}
	wantContains(t, got.errOut, "; --token says which step it is for without reading it")
	got = actionOf(t, "approve", "", unread, soaking(t), accepted, func(o *migrationActionOptions) { o.yes, o.token = true, "1.1.2-6" })
	if got.code != ExitOK || got.actions[0].Spec.Step.Token != "1.1.2-6" {
		t.Errorf("with a token: exit code %d\n%s", got.code, got.errOut)
	}
	got = actionOf(t, "rollback", "", interceptor.Funcs{}, nil, accepted, nil)
	if got.code != ExitFailure || len(got.actions) != 0 {
		t.Errorf("of what is not there: exit code %d", got.code)
	}
	wantContains(t, got.errOut, "RingMigration cdn/v1-to-v3 does not exist: there is none in namespace cdn")
}

func TestMigrationActionIsRefused(t *testing.T) {
	forbidden := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "ringwright.dev", Resource: "ringmigrationactions"}, "", errors.New("ann may not"))
	}}
	got := actionOf(t, "skip", "", forbidden, soaking(t), nil, yes)
	if got.code != ExitFailure {
		t.Errorf("exit code %d", got.code)
	}
	wantContains(t, got.errOut, "skip of RingMigration cdn/v1-to-v3 by ann@example.com was refused: ringmigrationactions.ringwright.dev is forbidden: ann may not\n"+
		"It takes a Role in namespace cdn with the verb create on ringmigrationactions.ringwright.dev and the verb override on ringmigrations.ringwright.dev ")
}

// TestMigrationActionIsRejected: every reason has a sentence.
func TestMigrationActionIsRejected(t *testing.T) {
	for _, reason := range []string{
		string(migration.StaleStep), string(migration.TooLate), string(migration.NotAwaiting), string(migration.NotPaused), string(migration.NotRolledBack),
		string(migration.NothingToSkip), string(migration.DirectionBackward), string(migration.BeingDeleted), string(migration.UnknownType), "NotFound",
	} {
		if refusalText(reason) == refusalText("Tuesday") {
			t.Errorf("%s is not explained", reason)
		}
	}
	answer := &v1alpha1.RingMigrationActionStatus{Phase: v1alpha1.ActionRejected, Reason: "StaleStep", Message: "the token is 1.2.1-8"}
	got := actionOf(t, "skip", "", interceptor.Funcs{}, soaking(t), answer, yes)
	if got.code != ExitFailure {
		t.Errorf("exit code %d", got.code)
	}
	wantContains(t, got.errOut, "error: skip of RingMigration cdn/v1-to-v3 was rejected with reason StaleStep: the token is 1.2.1-8\n"+
		"Look at it: kubectl hashring migration explain v1-to-v3 -n cdn\n")
	answer.Message = ""
	got = actionOf(t, "skip", "", interceptor.Funcs{}, soaking(t), answer, yes)
	wantContains(t, got.errOut, "with reason StaleStep: it was given for another attempt, step or split than the migration is at; what you saw has changed\n")
}

func TestMigrationActionWithoutAnAnswer(t *testing.T) {
	got := actionOf(t, "pause", "", interceptor.Funcs{}, soaking(t), nil, nil)
	if got.code != ExitTimedOut {
		t.Errorf("exit code %d", got.code)
	}
	wantContains(t, got.errOut, "has not been answered within 1m0s: it stands, and is answered when the operator runs")
	got = actionOf(t, "pause", "", interceptor.Funcs{}, soaking(t), nil, func(o *migrationActionOptions) { o.wait = false })
	if got.code != ExitOK || strings.Contains(got.out, "Accepted") {
		t.Errorf("exit code %d\n%s", got.code, got.out)
	}
	wantContains(t, got.out, "When it is accepted: It stays where it is until \"resume\".\n")
	got = actionOf(t, "approve", "", interceptor.Funcs{}, soaking(t), nil, func(o *migrationActionOptions) { o.dryRun = true })
	if got.code != ExitOK || len(got.actions) != 0 {
		t.Errorf("a dry run: exit code %d, %d actions", got.code, len(got.actions))
	}
	wantContains(t, got.out, "would be created by ann@example.com: nothing was changed.\n")
}

// TestMigrationRollbackSaysWhatItDoes, as the policy of the migration has it.
func TestMigrationRollbackSaysWhatItDoes(t *testing.T) {
	wantContains(t, actionOf(t, "rollback", "", interceptor.Funcs{}, soaking(t), accepted, nil).out,
		"\nAccepted. It rolls back: all keys go to the stable ring at once, in every datacenter that can be reached.\n")
	staged := soaking(t, func(m *v1alpha1.RingMigration) {
		m.Spec.Rollback.Strategy, m.Spec.Rollback.Steps = v1alpha1.RollbackStaged, []string{"50%", "10%", "0%"}
	})
	wantContains(t, actionOf(t, "rollback", "", interceptor.Funcs{}, staged, accepted, nil).out,
		"\nAccepted. It rolls back by steps: at most 50%, then 10%, then 0% of the keys stay on the candidate, 5m apart.\n")
}

func TestMigrationActionUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"--reason has 513 characters, the limit is 512":                          {"rollback", "m", "--reason", strings.Repeat("ä", 513)},
		"--token has 65 characters, the limit is 64":                             {"rollback", "m", "--token", strings.Repeat("1", 65)},
		"--token is empty: it must be the token of a step, as status shows it":   {"rollback", "m", "--token", ""},
		"--timeout is -1s, it must be more than 0":                               {"rollback", "m", "--timeout", "-1s"},
		"no migration given: name a RingMigration":                               {"rollback"},
		"unknown flag: --yes\nSee 'kubectl hashring migration rollback --help'.": {"rollback", "m", "--yes"},
		"unknown command \"statsu\"\nSee 'kubectl hashring migration --help'.":   {"statsu"},
	} {
		wantContains(t, fail(t, ExitUsage, append([]string{"migration"}, args...)...), want)
	}
}
