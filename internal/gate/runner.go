// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/consumer"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/promclient"
)

// MaxMeasuring is how many gates are measured at a time.
const MaxMeasuring = 16

// Options are what a Runner needs.
type Options struct {
	Clock clock.Clock
	// Secrets and Objects read from the API server, not from a cache.
	Secrets, Objects client.Reader
	// Samples returns the newest counters of the consumers of a ring.
	Samples func(ring types.NamespacedName) []consumer.Sample
	// Changed is called when there is something new about a migration.
	Changed func(migration types.NamespacedName)
	// Registry serves the metrics while Start runs; nil where nobody does.
	Registry prometheus.Registerer
	// Loopback lets gates ask addresses of this host, as tests and demonstrations need it.
	Loopback bool
}

// Subject is what the gates of a migration are about. With another one they are measured anew.
type Subject struct {
	// UID, Namespace and Name are those of the RingMigration.
	UID             types.UID
	Namespace, Name string
	// Token names the dispatch.
	Token string
	// Rings are the names of the HashRings, Datacenters those of the present step; in a self-test those of all consumers.
	Rings, Datacenters []string
	// Effective is when the step took effect; zero while it has not.
	Effective time.Time
	// SelfTest asks whether the gates have data at all, before there is a candidate to judge.
	SelfTest bool
}

// same says whether two subjects are one. A time that went through a status may have lost the part of a second.
func (s Subject) same(o Subject) bool {
	return s.UID == o.UID && s.Namespace == o.Namespace && s.Name == o.Name && s.Token == o.Token && s.SelfTest == o.SelfTest &&
		slices.Equal(s.Rings, o.Rings) && slices.Equal(s.Datacenters, o.Datacenters) &&
		s.Effective.Truncate(time.Second).Equal(o.Effective.Truncate(time.Second))
}

// Reading is the newest result of a gate.
type Reading struct {
	Gate   string
	Result migration.Result
	// Value, Baseline and Samples are the numbers, nil where one is not known.
	Value, Baseline, Samples *float64
	// Detail says why, for people, in at most MaxDetailBytes.
	Detail string
	// At is the time of the data, Since that of the first one in a row with this result, about the same subject.
	At, Since time.Time
}

// MaxAnswerBytes is how large the body of an answer may be: a gate needs one number.
const MaxAnswerBytes = 256 << 10

// Runner measures the gates of migrations while Start runs. It is safe for concurrent use.
type Runner struct {
	options Options
	servers *promclient.Pool
	metrics *metrics
	// slots has room for the gates that may be measured at a time.
	slots chan struct{}

	mu      sync.Mutex
	follows map[types.UID]*follower
	// ctx is that of Start; nil while it does not run.
	ctx     context.Context
	running sync.WaitGroup
}

// follower is the gates of one migration, by name.
type follower struct {
	subject Subject
	gates   map[string]*measurer
}

// NewRunner returns a runner that follows no migration yet.
func NewRunner(o Options) *Runner {
	r := &Runner{options: o, slots: make(chan struct{}, MaxMeasuring), follows: map[types.UID]*follower{}}
	r.metrics = newMetrics(r)
	r.servers = promclient.NewPool(promclient.Options{
		MaxAnswerBytes: MaxAnswerBytes, Hint: "aggregate, a gate needs one number", UserAgent: "ringwright-operator", Loopback: o.Loopback,
	})
	return r
}

// NeedLeaderElection has only the leader measure.
func (*Runner) NeedLeaderElection() bool { return true }

// Start measures until ctx ends, and returns when nothing is on its way any more.
func (r *Runner) Start(ctx context.Context) error {
	unregister, err := r.metrics.register(r.options.Registry)
	if err != nil {
		return err
	}
	defer unregister()
	r.mu.Lock()
	r.ctx = ctx
	for _, f := range r.follows {
		for _, m := range f.gates {
			r.run(m)
		}
	}
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.ctx = nil
	r.mu.Unlock()
	r.running.Wait()
	r.servers.Close()
	return nil
}

// run starts a measurer. The caller holds mu.
func (r *Runner) run(m *measurer) {
	ctx, cancel := context.WithCancel(r.ctx)
	m.stop = cancel
	r.running.Go(func() {
		defer cancel()
		m.run(ctx)
	})
}

// Follow has the gates of a migration measured, and returns the newest results that are about this subject, in the order of the
// gates. A gate that has none yet is not among them.
func (r *Runner) Follow(s Subject, gates []v1alpha1.MigrationGate) []migration.Measurement {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.follows[s.UID]
	if f == nil {
		r.drop(types.NamespacedName{Namespace: s.Namespace, Name: s.Name}) // An earlier one of the name.
		f = &follower{gates: map[string]*measurer{}}
		r.follows[s.UID] = f
	}
	if !f.subject.same(s) {
		f.subject = s
	}
	names := map[string]bool{}
	for _, g := range gates {
		names[g.Name] = true
		if m := f.gates[g.Name]; m != nil {
			m.set(f.subject, g)
			continue
		}
		m := newMeasurer(r)
		m.set(f.subject, g) // Before it runs: there is always something to measure.
		f.gates[g.Name] = m
		if r.ctx != nil {
			r.run(m)
		}
	}
	for name, m := range f.gates {
		if !names[name] {
			m.end()
			delete(f.gates, name)
		}
	}
	var list []migration.Measurement
	for _, reading := range f.readings(gates) {
		list = append(list, migration.Measurement{Gate: reading.Gate, At: reading.At, Result: reading.Result, Detail: reading.Detail})
	}
	return list
}

// readings returns the newest result of each gate that has one.
func (f *follower) readings(gates []v1alpha1.MigrationGate) []Reading {
	var list []Reading
	for _, g := range gates {
		if reading := f.gates[g.Name].newest(); reading != nil {
			list = append(list, *reading)
		}
	}
	return list
}

// Readings returns the newest results of a migration with their numbers, as Follow asked for them last, in the order of the names.
func (r *Runner) Readings(uid types.UID) []Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.follows[uid]
	if f == nil {
		return nil
	}
	var list []Reading
	for _, m := range f.gates {
		if reading := m.newest(); reading != nil {
			list = append(list, *reading)
		}
	}
	slices.SortFunc(list, func(a, b Reading) int { return strings.Compare(a.Gate, b.Gate) })
	return list
}

// Forget ends what Follow began.
func (r *Runner) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(uid)
}

// Gone ends what Follow began for a migration of which nothing but the name is known any more.
func (r *Runner) Gone(migration types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(migration)
}

// drop forgets the migrations of a name. The caller holds mu.
func (r *Runner) drop(migration types.NamespacedName) {
	for uid, f := range r.follows {
		if f.subject.Namespace == migration.Namespace && f.subject.Name == migration.Name {
			r.forget(uid)
		}
	}
}

// forget ends the measuring for a migration. The caller holds mu.
func (r *Runner) forget(uid types.UID) {
	if f := r.follows[uid]; f != nil {
		for _, m := range f.gates {
			m.end()
		}
		delete(r.follows, uid)
	}
}
