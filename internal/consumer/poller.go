// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/telemetry"
)

// The limits of requests that are on their way.
const (
	// MaxAsking is how many there are together.
	MaxAsking = 128
	// MaxAskingOfRing is how many there are for one HashRing, as long as its pods answer.
	MaxAskingOfRing = 32
)

// DefaultTimeout is spec.consumers.timeout where spec does not set it; the schema has the same default.
const DefaultTimeout = 2 * time.Second

// Pod is a pod that reads a ring.
type Pod struct {
	Name string
	UID  types.UID
	// IP is its address, "" while it has none.
	IP string
}

// Options are what a Poller needs.
type Options struct {
	// List returns the pods of a namespace that a selector selects, without those that have ended or are being deleted. It is
	// called often, and reads from a cache.
	List func(ctx context.Context, namespace string, selector labels.Selector) ([]Pod, error)
	// Ask asks one, as [Asker.Ask] does.
	Ask func(ctx context.Context, ip string, port int32, timeout time.Duration) (Answer, error)
	// Changed is called when something else is known of the consumers of a ring than before.
	Changed func(ring types.NamespacedName)
	// Metrics counts; nil counts nothing.
	Metrics *telemetry.Metrics
}

// Poller asks the consumers of rings, as long as Start runs. It is safe for concurrent use.
type Poller struct {
	options Options
	// slots has room for the requests that may be on their way.
	slots chan struct{}
	crowd crowd

	mu        sync.Mutex
	followers map[types.NamespacedName]*follower
	// ctx is that of Start; nil while it does not run.
	ctx     context.Context
	running sync.WaitGroup
}

// NewPoller returns a poller that follows no ring yet.
func NewPoller(o Options) *Poller {
	return &Poller{options: o, slots: make(chan struct{}, MaxAsking), followers: map[types.NamespacedName]*follower{}}
}

// NeedLeaderElection has only the leader ask.
func (*Poller) NeedLeaderElection() bool { return true }

// Start asks until ctx ends.
func (p *Poller) Start(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	for _, f := range p.followers {
		p.run(f)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.ctx = nil
	p.mu.Unlock()
	p.running.Wait()
	return nil
}

// run starts a follower. The caller holds mu.
func (p *Poller) run(f *follower) {
	ctx, cancel := context.WithCancel(p.ctx)
	f.stop = cancel
	p.running.Go(func() { f.run(ctx) })
}

// Follow has the consumers of a HashRing asked, and returns what is known of them: nil until all have been asked once. What is
// known of them ends when the HashRing is another, or selects others.
func (p *Poller) Follow(r *v1alpha1.HashRing) *plan.Consumers {
	key := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
	spec := r.Spec.Consumers
	if spec == nil {
		p.Forget(key)
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&spec.Selector)
	if err != nil {
		p.Forget(key)
		return &plan.Consumers{Invalid: err.Error()}
	}
	about := subject{uid: r.UID, selector: selector.String(), port: spec.Port, timeout: DefaultTimeout}
	if about.port == 0 {
		about.port = v1alpha1.DefaultConsumerPort
	}
	if spec.Timeout != nil {
		about.timeout = spec.Timeout.Duration
	}
	return p.follower(key, about, selector).consumers()
}

func (p *Poller) follower(key types.NamespacedName, about subject, selector labels.Selector) *follower {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.followers[key]; f != nil {
		if f.subject == about {
			return f
		}
		f.end()
	}
	f := newFollower(p, key, about, selector)
	p.followers[key] = f
	if p.ctx != nil {
		p.run(f)
	}
	return f
}

// Publish takes note, at now, of what the consumers of a ring are to have; nil where nothing is published. Where it is something
// else than before, they are asked soon.
func (p *Poller) Publish(ring types.NamespacedName, asked *plan.Asked, now time.Time) {
	p.mu.Lock()
	f := p.followers[ring]
	p.mu.Unlock()
	if f != nil {
		f.publish(asked, now)
	}
}

// Forget ends what Follow began.
func (p *Poller) Forget(ring types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.followers[ring]; f != nil {
		f.end()
		delete(p.followers, ring)
	}
}

// PodChanged takes note that a pod with these labels came, went or changed.
func (p *Poller) PodChanged(namespace string, set labels.Labels) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, f := range p.followers {
		if key.Namespace == namespace && f.selects.Matches(set) {
			f.relist()
		}
	}
}
