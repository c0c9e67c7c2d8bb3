// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// noon is when the commands of these tests run.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// soaking returns a migration in the soak of its third step.
func soaking(t *testing.T, change ...func(*v1alpha1.RingMigration)) *v1alpha1.RingMigration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(packageDir, "testdata", "migration", "soaking.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m := &v1alpha1.RingMigration{}
	if err := yaml.UnmarshalStrict(text, m); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(m)
	}
	return m
}

func micro(text string) metav1.MicroTime {
	at, err := time.Parse("15:04:05", text)
	if err != nil {
		panic(err)
	}
	return metav1.NewMicroTime(noon.Truncate(24 * time.Hour).Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second))
}

func hold(kind v1alpha1.HoldType, since, detail string) v1alpha1.MigrationHold {
	return v1alpha1.MigrationHold{Type: kind, Since: micro(since), Detail: detail}
}

// held adds holds.
func held(holds ...v1alpha1.MigrationHold) func(*v1alpha1.RingMigration) {
	return func(m *v1alpha1.RingMigration) { m.Status.Holds = append(m.Status.Holds, holds...) }
}

// awaiting waits for approval of the step before the present one.
func awaiting(m *v1alpha1.RingMigration) {
	m.Status.Position = &v1alpha1.MigrationPosition{Stage: 0, StageName: "validation", Step: 1}
	m.Status.StepPhase, m.Status.Token = v1alpha1.StepAwaitingApproval, "1.1.2-6"
	m.Status.Soak = &v1alpha1.SoakAccount{Required: metav1.Duration{Duration: 24 * time.Hour}, Credited: metav1.Duration{Duration: 24 * time.Hour}}
	held(hold("AwaitingApproval", "10:00:00", "token 1.1.2-6"))(m)
}

// rolledBack is back because a gate failed.
func rolledBack(m *v1alpha1.RingMigration) {
	m.Status.Phase, m.Status.StepPhase, m.Status.Soak, m.Status.Conditions = v1alpha1.MigrationRolledBack, "", nil, nil
	m.Status.Rollback = &v1alpha1.MigrationRollback{
		Cause: "GateFailed", Detail: "connect-errors failed 3 times within 10m0s: value 0.02", Since: micro("11:30:00"), Unreached: []string{"fra02"},
	}
	m.Status.LastTransition = &v1alpha1.MigrationTransition{From: "RollingBack", To: "RolledBack", Event: "Done", At: micro("11:40:00")}
}

func succeeded(m *v1alpha1.RingMigration) {
	m.Status.Phase, m.Status.StepPhase, m.Status.Soak, m.Status.Conditions = v1alpha1.MigrationSucceeded, "", nil, nil
	m.Status.Position = &v1alpha1.MigrationPosition{Stage: 3}
	m.Status.Remainder = []string{"sin01"}
}

// storeOf returns the migration cdn/v1-to-v3 in a store of objects, which stands in for an API server. It knows who asks.
func storeOf(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) liveMigration {
	t.Helper()
	scheme, err := migrationScheme()
	if err != nil {
		t.Fatal(err)
	}
	inner := hooks.Create
	hooks.Create = func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
		if review, ok := object.(*authenticationv1.SelfSubjectReview); ok {
			review.Status.UserInfo.Username = "ann@example.com"
			return nil
		}
		if inner != nil {
			return inner(ctx, c, object, options...)
		}
		return c.Create(ctx, object, options...)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.RingMigration{}, &v1alpha1.RingMigrationAction{}).
		WithIndex(eventType, "involvedObject.kind", eventField).WithIndex(eventType, "involvedObject.name", eventField).
		WithInterceptorFuncs(hooks).Build()
	return liveMigration{client: c, namespace: "cdn", name: "v1-to-v3", now: func() time.Time { return noon }}
}

// ioOf returns streams and where they write.
func ioOf(in string) (streams genericiooptions.IOStreams, out, errOut *bytes.Buffer) {
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	return genericiooptions.IOStreams{In: strings.NewReader(in), Out: out, ErrOut: errOut}, out, errOut
}

// eventField is an index of the store: the migration is what every event there is about.
func eventField(object client.Object) []string {
	ref := object.(*corev1.Event).InvolvedObject
	return []string{ref.Kind, ref.Name}
}

var eventType = &corev1.Event{}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
