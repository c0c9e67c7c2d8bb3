// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// migrationPrefix is that of all names of migrations.
const migrationPrefix = "ringwright_migration_"

func describeMigration(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(migrationPrefix+name, help, append([]string{"namespace", "name"}, labels...), nil)
}

var (
	migrationInfoDesc      = describeMigration("info", "Always 1, with the phase and the phase within the step.", "phase", "step_phase")
	migrationStageDesc     = describeMigration("stage", "Number of the stage, from 1 on; one more than there are for the soak before the old ring is retired.")
	migrationStepDesc      = describeMigration("step", "Number of the step of the stage, from 1 on.")
	migrationDesiredDesc   = describeMigration("desired_basis_points", "Share of the keys, of 10000, that is asked for in a datacenter.", "datacenter")
	migrationEffectiveDesc = describeMigration("effective_basis_points", "Share of the keys, of 10000, that is published for a datacenter.", "datacenter")
	migrationRequiredDesc  = describeMigration("soak_required_seconds", "Clean time that the step asks for.")
	migrationCreditedDesc  = describeMigration("soak_credited_seconds", "Clean time that is credited.")
	migrationHoldDesc      = describeMigration("hold", "Always 1, while something keeps it from going forward.", "type")
	migrationHoldSinceDesc = describeMigration("hold_since_timestamp_seconds", "When that began.", "type")
	migrationConsumersDesc = describeMigration("consumers", "Consumers of all its rings: total, and current, which have the present split.", "state")
	migrationProgressDesc  = describeMigration("last_progress_timestamp_seconds", "When it last went from one place to another.")
	migrationBackDesc      = describeMigration("rollback_available", "1 where there is a way back, else 0.")
	migrationUnreachedDesc = describeMigration("rollback_unreached_datacenters", "Datacenters of which it is not known that a rollback has arrived.")
	migrationDescs         = []*prometheus.Desc{
		migrationInfoDesc, migrationStageDesc, migrationStepDesc, migrationDesiredDesc, migrationEffectiveDesc, migrationRequiredDesc,
		migrationCreditedDesc, migrationHoldDesc, migrationHoldSinceDesc, migrationConsumersDesc, migrationProgressDesc, migrationBackDesc,
		migrationUnreachedDesc,
	}
)

// Migrations counts what happens to RingMigrations, and collects what they are. Its methods may be called concurrently, and on nil,
// which counts nothing.
type Migrations struct {
	reader   client.Reader
	registry prometheus.Registerer

	transitions, rollbacks, actions *prometheus.CounterVec
}

// NewMigrations returns metrics of the RingMigrations that reader lists, which is a cache. They are served by registry while Start runs.
func NewMigrations(reader client.Reader, registry prometheus.Registerer) *Migrations {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: migrationPrefix + name, Help: help}, append([]string{"namespace", "name"}, labels...))
	}
	return &Migrations{
		reader: reader, registry: registry,
		transitions: counter("transitions_total", "Times that it went from one place to another.", "from", "to"),
		rollbacks:   counter("rollbacks_total", "Times that it began to go back, by cause.", "cause"),
		actions:     counter("actions_total", "Actions that were decided on: accepted, or rejected with a reason.", "type", "result"),
	}
}

// Start serves the metrics until ctx ends. A second operator in the same process, as tests have it, serves none.
func (m *Migrations) Start(ctx context.Context) error {
	err := m.registry.Register(m)
	if errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("registering the metrics of RingMigrations: %w", err)
	}
	<-ctx.Done()
	m.registry.Unregister(m)
	return nil
}

// NeedLeaderElection has only the leader serve them.
func (*Migrations) NeedLeaderElection() bool { return true }

// Transition counts that a migration went from one place to another.
func (m *Migrations) Transition(r *v1alpha1.RingMigration, from, to string) {
	if m != nil {
		m.transitions.WithLabelValues(r.Namespace, r.Name, from, to).Inc()
	}
}

// RolledBack counts that a migration began to go back.
func (m *Migrations) RolledBack(r *v1alpha1.RingMigration, cause string) {
	if m != nil {
		m.rollbacks.WithLabelValues(r.Namespace, r.Name, cause).Inc()
	}
}

// Action counts what became of an action; refusal is "" where it was accepted.
func (m *Migrations) Action(r *v1alpha1.RingMigration, kind, refusal string) {
	if m == nil {
		return
	}
	result := "Accepted"
	if refusal != "" {
		result = refusal
	}
	m.actions.WithLabelValues(r.Namespace, r.Name, kind, result).Inc()
}

// Forget ends the series of a migration that is gone.
func (m *Migrations) Forget(namespace, name string) {
	if m == nil {
		return
	}
	for _, vec := range []*prometheus.CounterVec{m.transitions, m.rollbacks, m.actions} {
		vec.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": name})
	}
}

// Describe sends the metrics that Collect can send.
func (m *Migrations) Describe(out chan<- *prometheus.Desc) {
	for _, vec := range []*prometheus.CounterVec{m.transitions, m.rollbacks, m.actions} {
		vec.Describe(out)
	}
	for _, desc := range migrationDescs {
		out <- desc
	}
}

// Collect sends what was counted, and what the migrations are now. Where they cannot be listed it leaves the latter out.
func (m *Migrations) Collect(out chan<- prometheus.Metric) {
	for _, vec := range []*prometheus.CounterVec{m.transitions, m.rollbacks, m.actions} {
		vec.Collect(out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	list := &v1alpha1.RingMigrationList{}
	if err := m.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil { // They are only read.
		log.Log.WithName("telemetry").Error(err, "Listing RingMigrations for a scrape")
		return
	}
	for i := range list.Items {
		r := &list.Items[i]
		sender{out: out, namespace: r.Namespace, name: r.Name}.migration(r.Status)
	}
}

func (s sender) migration(status v1alpha1.RingMigrationStatus) {
	s.gauge(migrationInfoDesc, 1, string(status.Phase), string(status.StepPhase))
	if p := status.Position; p != nil {
		s.gauge(migrationStageDesc, float64(p.Stage+1))
		s.gauge(migrationStepDesc, float64(p.Step+1))
	}
	for _, share := range status.Split {
		s.gauge(migrationDesiredDesc, float64(share.BasisPoints), share.Datacenter)
	}
	total, current := int32(0), int32(0)
	for _, d := range status.Datacenters {
		total, current = total+d.Total, current+d.Current
		if d.Name != "" {
			s.gauge(migrationEffectiveDesc, float64(d.BasisPoints), d.Name)
		}
	}
	s.gauge(migrationConsumersDesc, float64(total), "total")
	s.gauge(migrationConsumersDesc, float64(current), "current")
	if soak := status.Soak; soak != nil {
		s.gauge(migrationRequiredDesc, soak.Required.Seconds())
		s.gauge(migrationCreditedDesc, soak.Credited.Seconds())
	}
	for _, h := range status.Holds {
		s.gauge(migrationHoldDesc, 1, string(h.Type))
		s.gauge(migrationHoldSinceDesc, seconds(h.Since.Time), string(h.Type))
	}
	if t := status.LastTransition; t != nil {
		s.gauge(migrationProgressDesc, seconds(t.At.Time))
	}
	if b := status.Rollback; b != nil {
		s.gauge(migrationUnreachedDesc, float64(len(b.Unreached)))
	}
	way := 0.
	if meta.IsStatusConditionPresentAndEqual(status.Conditions, string(v1alpha1.ConditionRollbackAvailable), metav1.ConditionTrue) {
		way = 1
	}
	s.gauge(migrationBackDesc, way)
}

func seconds(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }
