// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// firstJitter is within which time of each other the gates of a step are measured first.
const firstJitter = 500 * time.Millisecond

// measurer measures one gate of one migration, never twice at once.
type measurer struct {
	runner *Runner
	// wake has run look at once.
	wake chan struct{}
	// stop ends run; nil while it does not run. The runner's mu guards it.
	stop context.CancelFunc

	mu   sync.Mutex
	task *task
	// due is when it is measured next, newestReading what it said last of task.
	due           time.Time
	newestReading *Reading
	// cancel ends the measurement that is on its way; nil while none is.
	cancel context.CancelFunc
	ended  bool
}

// task is what is measured: a gate, about a subject. Only one measurement at a time uses it.
type task struct {
	subject Subject
	gate    compiled
	// invalid says what is wrong with the gate.
	invalid error
	// begun is when the subject was first heard of.
	begun time.Time
	clock clock.PassiveClock
	tally tally
}

// since is from when on data is about the subject: until a step took effect everywhere, from when it was heard of.
func (t *task) since() time.Time {
	switch {
	case t.subject.SelfTest:
		return time.Time{}
	case t.subject.Effective.IsZero():
		return t.begun
	default:
		return t.subject.Effective
	}
}

// reading makes a result.
func (t *task) reading(at time.Time, result migration.Result, detail string) Reading {
	return Reading{Gate: t.gate.Name, Result: result, Detail: text(detail), At: at}
}

func newMeasurer(r *Runner) *measurer { return &measurer{runner: r, wake: make(chan struct{}, 1)} }

// end ends run and what is on its way. The caller holds the runner's mu.
func (m *measurer) end() {
	m.mu.Lock()
	m.ended, m.newestReading = true, nil
	m.mu.Unlock()
	if m.stop != nil {
		m.stop()
	}
}

// set makes it measure something; where that is not what it measures already, what it said is forgotten and what is on its way is
// ended.
func (m *measurer) set(s Subject, g v1alpha1.MigrationGate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.task != nil && m.task.subject.same(s) && equality.Semantic.DeepEqual(m.task.gate.MigrationGate, g) {
		return
	}
	now := m.runner.options.Clock.Now()
	compiled, err := compileGate(g)
	m.task = &task{subject: s, gate: compiled, invalid: err, begun: now, clock: m.runner.options.Clock}
	m.newestReading, m.due = nil, now.Add(rand.N(min(firstJitter, max(compiled.interval/10, 1))))
	if m.cancel != nil {
		m.cancel()
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// newest returns what it said last of what it measures; nil where that is nothing.
func (m *measurer) newest() *Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newestReading
}

// run measures until ctx ends.
func (m *measurer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if wait := m.wait(); wait > 0 {
			timer := m.runner.options.Clock.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-m.wake:
			case <-timer.C():
			}
			timer.Stop()
			continue
		}
		select {
		case <-ctx.Done():
		case m.runner.slots <- struct{}{}:
			changed := m.once(ctx)
			<-m.runner.slots
			if changed != nil {
				m.runner.options.Changed(*changed)
			}
		}
	}
}

func (m *measurer) wait() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.due.Sub(m.runner.options.Clock.Now())
}

// once measures, and returns whom to tell.
func (m *measurer) once(ctx context.Context) *types.NamespacedName {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	m.mu.Lock()
	t := m.task
	m.cancel = cancel
	m.mu.Unlock()
	began := t.clock.Now()
	reading := m.runner.measure(limited, t)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel = nil
	if m.task != t || m.ended || ctx.Err() != nil { // Nobody asks about that any more.
		return nil
	}
	m.due = t.next(began)
	m.runner.metrics.measured(t.gate, reading.Result)
	if !m.keep(reading) {
		return nil
	}
	return &types.NamespacedName{Namespace: t.subject.Namespace, Name: t.subject.Name}
}

// keep makes a result the newest, where it says something that is not known. The caller holds mu.
func (m *measurer) keep(reading Reading) bool {
	reading.Since = reading.At
	if last := m.newestReading; last != nil {
		same := last.Result == reading.Result
		if same {
			reading.Since = last.Since
		}
		if reading.At.Before(last.At) || same && reading.At.Sub(last.At) < m.task.apart() {
			return false
		}
	}
	m.newestReading = &reading
	return true
}

// apart is how far two results that say the same have to be from each other to be two. Counters of consumers are looked at more
// often than that, because they come at times of their own.
func (t *task) apart() time.Duration { return t.gate.interval * 3 / 4 }

// next returns when it is measured again: at its interval or a little before, so that those of many migrations spread, and no
// result gets as old as two intervals. A step that is too new to be asked about is waited for.
func (t *task) next(began time.Time) time.Time {
	interval := t.gate.interval
	if t.gate.Consumers != nil {
		interval /= 2
	}
	due := began.Add(interval - rand.N(max(interval/10, 1)))
	if since := t.since(); t.gate.Prometheus != nil && !since.IsZero() {
		if ready := since.Add(t.gate.patience() + time.Second - 1).Truncate(time.Second); ready.After(began) && ready.Before(due) {
			return ready
		}
	}
	return due
}

// measure measures.
func (r *Runner) measure(ctx context.Context, t *task) Reading {
	switch {
	case t.invalid != nil:
		return t.reading(t.clock.Now().Truncate(time.Second), migration.Error, t.invalid.Error())
	case t.gate.Prometheus != nil:
		return r.measurePrometheus(ctx, t)
	case t.gate.Consumers != nil:
		return r.measureConsumers(t)
	default:
		return r.measureObject(ctx, t)
	}
}
