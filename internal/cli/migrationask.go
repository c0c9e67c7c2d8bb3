// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

// statusPatience is how long an action that needs no status waits for it.
const statusPatience = 5 * time.Second

// stepOf returns the step that the action is for. One that needs none does without a status that cannot be read.
func (o *migrationActionOptions) stepOf(ctx context.Context, live liveMigration) (*v1alpha1.ActionStep, error) {
	brief, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	object, err := live.get(brief)
	missing := errors.Is(err, errNoMigrationCRD) || errors.As(err, new(*notFoundError))
	switch {
	case err != nil && (missing || ctx.Err() != nil):
		return nil, err
	case err != nil && o.token != "":
		return &v1alpha1.ActionStep{Token: o.token}, nil
	case err != nil && o.confirmed:
		return nil, fmt.Errorf("%w; --token says which step it is for without reading it", err)
	case err != nil:
		printf(o.streams.ErrOut, "note: %v: the action goes without the token of a step\n", err)
		return nil, nil
	}
	return o.present(live, migrationView{object})
}

// present returns the present step, if it is the one that is meant.
func (o *migrationActionOptions) present(live liveMigration, v migrationView) (*v1alpha1.ActionStep, error) {
	if o.kind == v1alpha1.ActionRollback || o.kind == v1alpha1.ActionReject {
		o.next = rollbackPath(v.Spec.Rollback)
	}
	token, name := v.Status.Token, v.step()
	if name == "" {
		name = string(v.phase())
	}
	switch {
	case o.token != "" && token != o.token && o.confirmed:
		return nil, fmt.Errorf("%s is at %s with token %s by now, not at the step of token %s: look at it again before you %s", live, name, dash(token), o.token, o.verb)
	case o.token != "" && token != o.token:
		return &v1alpha1.ActionStep{Token: o.token}, nil
	case token == "" && o.confirmed:
		return nil, fmt.Errorf("%s has no token yet: the operator has not looked at it, so there is nothing to %s", live, o.verb)
	case token == "":
		return nil, nil
	}
	return &v1alpha1.ActionStep{Name: name, Token: token}, nil
}

// rollbackPath says what a rollback does.
func rollbackPath(p v1alpha1.RollbackPolicy) string {
	if p.Strategy == v1alpha1.RollbackStaged {
		return fmt.Sprintf("It rolls back by steps: at most %s of the keys stay on the candidate, %s apart.",
			strings.Join(p.Steps, ", then "), migrationapi.Short(durationOf(p.Interval, 5*time.Minute)))
	}
	return "It rolls back: all keys go to the stable ring at once, in every datacenter that can be reached."
}

// create makes the action as the user of the kubeconfig.
func (o *migrationActionOptions) create(ctx context.Context, live liveMigration, step *v1alpha1.ActionStep) (*v1alpha1.RingMigrationAction, error) {
	actor, err := live.whoAmI(ctx)
	if err != nil {
		return nil, err
	}
	action := &v1alpha1.RingMigrationAction{
		ObjectMeta: metav1.ObjectMeta{Namespace: live.namespace, GenerateName: live.name + "-" + o.verb + "-"},
		Spec: v1alpha1.RingMigrationActionSpec{
			MigrationRef: v1alpha1.RingMigrationReference{Name: live.name}, Type: o.kind, Step: step,
			Actor: v1alpha1.ActionActor{Username: actor}, Reason: o.reason,
		},
	}
	options := []client.CreateOption{cliManager}
	if o.dryRun {
		options = append(options, client.DryRunAll)
	}
	switch err := live.client.Create(ctx, action, options...); {
	case noSuchKind(err):
		return nil, errNoMigrationCRD
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%s of %s by %s was refused: %w\n%s", o.verb, live, printable([]byte(actor)), err, o.needs(live))
	case err != nil:
		return nil, fmt.Errorf("creating a %s for %s: %w", actionKind, live, err)
	}
	return action, nil
}

// needs says which permissions the action takes.
func (o *migrationActionOptions) needs(live liveMigration) string {
	return fmt.Sprintf("It takes a Role in namespace %s with the verb create on ringmigrationactions.ringwright.dev and the verb %s on ringmigrations.ringwright.dev "+
		"(kubectl auth can-i %s ringmigrations/%s -n %s says whether you have that)", live.namespace, o.permission, o.permission, live.name, live.namespace)
}

// whoAmI returns the name of the user of the kubeconfig, as the API server knows it.
func (l liveMigration) whoAmI(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := l.client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("asking the API server who you are: %w", err)
	}
	if review.Status.UserInfo.Username == "" {
		return "", errors.New("the API server does not say who you are: its answer to a SelfSubjectReview has no username")
	}
	return review.Status.UserInfo.Username, nil
}

// await waits for the answer. The error says why the action was rejected.
func (o *migrationActionOptions) await(ctx context.Context, live liveMigration, action *v1alpha1.RingMigrationAction) error {
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	key := client.ObjectKeyFromObject(action)
	read := func(ctx context.Context) (*v1alpha1.RingMigrationAction, error) {
		found := &v1alpha1.RingMigrationAction{}
		err := live.client.Get(ctx, key, found)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return found, err
	}
	var answer *v1alpha1.RingMigrationAction
	err := follow(limited, live.client, key, &v1alpha1.RingMigrationActionList{}, read, func(a *v1alpha1.RingMigrationAction) (bool, error) {
		answer = a
		return a != nil && a.Status.Phase != "", nil
	})
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return &codeError{ExitTimedOut, fmt.Errorf("%s %s has not been answered within %s: it stands, and is answered when the operator runs", actionKind, key, o.timeout)}
	case err != nil:
		return fmt.Errorf("%s %s was created; waiting for its answer: %w", actionKind, key, err)
	case answer == nil:
		return fmt.Errorf("%s %s was deleted before it was answered", actionKind, key)
	case answer.Status.Phase == v1alpha1.ActionRejected:
		return o.rejection(live, answer)
	}
	return o.say("Accepted. %s\n", o.next)
}

func (o *migrationActionOptions) rejection(live liveMigration, answer *v1alpha1.RingMigrationAction) error {
	why := cmp.Or(answer.Status.Message, refusalText(string(answer.Status.Reason)))
	return fmt.Errorf("%s of %s was rejected with reason %s: %s\nLook at it: %s", o.verb, live, answer.Status.Reason, why, live.command("explain"))
}

// refusalText says what a reason of a rejection means.
func refusalText(reason string) string {
	switch migration.Refusal(reason) {
	case migration.StaleStep:
		return "it was given for another attempt, step or split than the migration is at; what you saw has changed"
	case migration.TooLate:
		return "the old ring is being retired or gone, or the migration goes back already: there is nothing that it could change"
	case migration.NotAwaiting:
		return "the step does not wait for an approval, or has it already"
	case migration.NotPaused:
		return "nobody has paused it; spec.suspend is ended in the spec"
	case migration.NotRolledBack:
		return "only what is rolled back can be tried again"
	case migration.NothingToSkip:
		return "the step does not soak yet, and an acknowledgement cannot be skipped"
	case migration.DirectionBackward:
		return "spec.direction is Backward; set it to Forward first"
	case migration.BeingDeleted:
		return "the migration is being deleted"
	case migration.UnknownType:
		return "the operator does not know this type of action; it may be older than this program"
	}
	if reason == "NotFound" {
		return "there is no such RingMigration"
	}
	return "this program does not know that reason"
}
