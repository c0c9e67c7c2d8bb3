// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// statusOf returns what "migration status" prints.
func statusOf(t *testing.T, m *v1alpha1.RingMigration, change ...func(*migrationStatusOptions)) string {
	t.Helper()
	streams, out, _ := ioOf("")
	o := &migrationStatusOptions{streams: streams}
	for _, f := range change {
		f(o)
	}
	if err := o.run(t.Context(), storeOf(t, interceptor.Funcs{}, m)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestMigrationStatus(t *testing.T) {
	many := func(m *v1alpha1.RingMigration) {
		for i := range 300 {
			m.Status.Datacenters = append(m.Status.Datacenters, v1alpha1.MigrationDatacenter{
				Name: fmt.Sprintf("z%03d", i), Total: 10, Reachable: 10, Current: 10 - int32(i%150/149),
			})
		}
	}
	for name, m := range map[string]*v1alpha1.RingMigration{
		"soaking":    soaking(t),
		"awaiting":   soaking(t, awaiting),
		"rolledback": soaking(t, rolledBack),
		"succeeded":  soaking(t, succeeded),
		"many":       soaking(t, many),
		"new":        soaking(t, func(m *v1alpha1.RingMigration) { m.Status = v1alpha1.RingMigrationStatus{ObservedGeneration: -1} }),
		"held": soaking(t, held(hold("Paused", "11:00:00", "by bob"), hold("NotConverged", "11:45:00", "fra02: edge-7, edge-9"), hold("Tuesday", "11:59:00", "")),
			func(m *v1alpha1.RingMigration) {
				m.Status.Paused = &v1alpha1.MigrationPause{By: "bob", At: micro("11:00:00")}
				m.Status.Holds[2].EndedBy, m.Status.Holds[2].Command = "Wednesday", "sleep 86400"
			}),
		"preparing": soaking(t, func(m *v1alpha1.RingMigration) {
			m.Status.Phase, m.Status.StepPhase, m.Status.Soak, m.Status.Position = v1alpha1.MigrationPreparing, "", nil, &v1alpha1.MigrationPosition{StageName: "validation"}
		}),
		"retiring": soaking(t, succeeded, func(m *v1alpha1.RingMigration) {
			m.Status.Phase = v1alpha1.MigrationRetiring
			m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: micro("11:00:00").Time}, []string{"ringwright.dev/migration"}
		}),
	} {
		t.Run(name, func(t *testing.T) { assertGolden(t, "migration-status-"+name, statusOf(t, m)) })
	}
	all := statusOf(t, soaking(t, many), func(o *migrationStatusOptions) { o.all = true })
	wantContains(t, all, "  z042    0%     10 of 10 consumers current\n")
}

func TestMigrationStatusOnATerminal(t *testing.T) {
	terminal := func(colours bool, height int) func(*migrationStatusOptions) {
		return func(o *migrationStatusOptions) { o.screen, o.watch = screen{height, colours}, true }
	}
	done := soaking(t, rolledBack)
	wantContains(t, statusOf(t, done, terminal(true, 100)), "\x1b[31mRolledBack\x1b[0m")
	if plain := statusOf(t, done, terminal(false, 100)); strings.Contains(plain, "\x1b[31m") {
		t.Errorf("colours where none were asked for: %q", plain)
	}
	short := statusOf(t, done, terminal(false, 5))
	if lines := strings.Count(short, "\n"); lines != 4 || !strings.HasPrefix(short, "\x1b[H") || !strings.HasSuffix(short, "…\x1b[K\n\x1b[J") {
		t.Errorf("%d lines: %q", lines, short)
	}
}

// TestMigrationStatusWatch: every change is shown, also those that come while a watch has ended, and the end ends it.
func TestMigrationStatusWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, out, _ := ioOf("")
		live := storeOf(t, interceptor.Funcs{}, soaking(t))
		o := &migrationStatusOptions{streams: streams, watch: true}
		done := make(chan error, 1)
		go func() { done <- o.run(t.Context(), live) }()
		synctest.Wait()
		for _, change := range []func(*v1alpha1.RingMigration){awaiting, rolledBack} {
			setStatus(t, live, soaking(t, change).Status)
			synctest.Wait()
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for _, want := range []string{"Shifting, Soaking\n", "Shifting, AwaitingApproval\n", "RolledBack\n"} {
			wantContains(t, text, want)
		}
		if n := strings.Count(text, "\n--- 2026-12-01T12:00:00Z\n"); n != 2 {
			t.Errorf("%d separators:\n%s", n, text)
		}
	})
}

func setStatus(t *testing.T, live liveMigration, status v1alpha1.RingMigrationStatus) {
	t.Helper()
	m, err := live.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.Status = status
	if err := live.client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// TestFollowEndsWithTheObject, and reads it again where a watch fails to tell.
func TestFollowEndsWithTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		live := storeOf(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, options...)
		}}, soaking(t))
		var seen []bool
		done := make(chan error, 1)
		go func() {
			done <- live.follow(t.Context(), func(m *v1alpha1.RingMigration) (bool, error) {
				seen = append(seen, m != nil)
				return false, nil
			})
		}()
		synctest.Wait()
		if err := live.client.Delete(t.Context(), soaking(t)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || len(seen) != 2 || !seen[0] || seen[1] || reads != 1 {
			t.Errorf("%v, seen %v, %d reads", err, seen, reads)
		}
	})
}

func TestBarIsFullOnlyAtTheEnd(t *testing.T) {
	for _, row := range []struct {
		part, whole float64
		full        int
	}{{0, 10, 0}, {5, 10, 10}, {9.99, 10, 19}, {10, 10, 20}, {0, 0, 20}, {-1, 10, 0}} {
		if got := strings.Count(bar(secondsOf(row.part), secondsOf(row.whole)), "█"); got != row.full {
			t.Errorf("%v of %v: %d cells, want %d", row.part, row.whole, got, row.full)
		}
	}
}
