// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ringwright/ringwright/internal/plan"
)

// subject is what a follower is about; with another one it begins anew.
type subject struct {
	uid      types.UID
	selector string
	port     int32
	timeout  time.Duration
}

// follower asks the consumers of one ring.
type follower struct {
	subject
	poller  *Poller
	key     types.NamespacedName
	selects labels.Selector
	// wake has run look at once.
	wake chan struct{}
	// stop ends run; nil while it does not run. The poller's mu guards it.
	stop context.CancelFunc

	mu    sync.Mutex
	asked *plan.Asked
	// pods are in the order of their names.
	pods []*pod
	// asking is how many requests are on their way.
	asking int
	// share is how many there may be where many are slow, and crowded says that a pod was due and there was no room for it.
	share   int
	crowded bool
	// listed is when pods was read last, outdated that it may have changed since.
	listed   time.Time
	outdated bool
	// complete says that each pod that there was at some time had been asked.
	complete bool
	// hurried is until when pods that are current are asked more often.
	hurried time.Time
	latency latency
}

// pod is a consumer, when it is asked next, and what it said.
type pod struct {
	Pod
	known plan.Consumer
	// counted is of the newest answer, which was at countedAt.
	counted   Counted
	countedAt time.Time
	// answered says that it was asked at least once, with whatever result.
	answered bool
	// asking says that a request is on its way, gone that nobody is interested in its answer.
	asking, gone bool
	// slow says that the request on its way counts as one of a slow ring.
	slow    bool
	current bool
	due     time.Time
	// misses is how often in a row it was asked in vain, since something was published.
	misses int
	// measured says that it counts for how long the present publication takes.
	measured bool
}

func newFollower(p *Poller, key types.NamespacedName, about subject, selector labels.Selector) *follower {
	return &follower{subject: about, poller: p, key: key, selects: selector, wake: make(chan struct{}, 1), outdated: true, share: firstShare}
}

// end ends run, and what is on its way for it. The caller holds the poller's mu.
func (f *follower) end() {
	if f.stop != nil {
		f.stop()
	}
}

// run asks until ctx ends.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		f.list(ctx)
		for f.start(ctx) {
		}
		timer := time.NewTimer(f.idle(time.Now()))
		select {
		case <-ctx.Done():
		case <-f.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (f *follower) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// relist takes note that the pods may have changed.
func (f *follower) relist() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outdated = true
	f.signal()
}

// list reads which pods there are, where that may have changed or was not done for long.
func (f *follower) list(ctx context.Context) {
	f.mu.Lock()
	age := time.Since(f.listed)
	wanted := age >= listInterval || f.outdated && age >= minListInterval
	if wanted {
		f.listed, f.outdated = time.Now(), false
	}
	f.mu.Unlock()
	if !wanted {
		return
	}
	pods, err := f.poller.options.List(ctx, f.key.Namespace, f.selects)
	if err != nil {
		if ctx.Err() == nil {
			log.Log.WithName("consumer").Error(err, "Listing the consumers of a ring", "HashRing", f.key)
		}
		f.relist()
		return
	}
	slices.SortFunc(pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	f.mu.Lock()
	changed := f.merge(pods, time.Now())
	f.mu.Unlock()
	if changed {
		f.poller.options.Changed(f.key)
	}
}

// merge makes pods those that there are, and says whether that is to be told.
func (f *follower) merge(pods []Pod, now time.Time) bool {
	old := make(map[string]*pod, len(f.pods))
	for _, p := range f.pods {
		old[p.Name] = p
	}
	changed := false
	list := make([]*pod, 0, len(pods))
	for _, seen := range pods {
		p := old[seen.Name]
		if p == nil || p.Pod != seen {
			changed = true
			p = successor(p, seen, now)
		} else {
			delete(old, seen.Name)
		}
		list = append(list, p)
	}
	for _, p := range old {
		p.gone, changed = true, true
	}
	f.pods = list
	return f.conclude(now) || changed && f.complete
}

// successor returns a pod that is to be asked at once. Of a pod with another address, what it said still counts until then.
func successor(old *pod, seen Pod, now time.Time) *pod {
	p := &pod{Pod: seen, known: plan.Consumer{Pod: seen.Name}, due: now}
	if old != nil && old.UID == seen.UID {
		p.known, p.current, p.measured = old.known, old.current, old.measured
		p.counted, p.countedAt = old.counted, old.countedAt
	}
	p.known.Waits = ""
	if seen.IP == "" {
		p.known.Waits, p.current = "it has no address yet", false
	}
	return p
}

// conclude finds out whether all pods have been asked, and whether all are current. It says whether the first is new.
func (f *follower) conclude(now time.Time) bool {
	current, answered := 0, 0
	for _, p := range f.pods {
		if p.answered || p.IP == "" {
			answered++
		}
		if p.current {
			current++
		}
	}
	if current == len(f.pods) && current > 0 {
		f.latency.all(f.poller.options.Metrics, now)
	}
	first := !f.complete && answered == len(f.pods)
	f.complete = f.complete || first
	return first
}

// consumers returns what is known; nil before all have been asked.
func (f *follower) consumers() *plan.Consumers {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.complete {
		return nil
	}
	known := &plan.Consumers{List: make([]plan.Consumer, len(f.pods))}
	for i, p := range f.pods {
		known.List[i] = p.known // What it said is never changed, only replaced.
	}
	return known
}

// publish takes note of what the pods are to have.
func (f *follower) publish(asked *plan.Asked, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked == asked || f.asked != nil && asked != nil && *f.asked == *asked {
		return
	}
	f.latency.begin(f.asked != nil && asked != nil && len(f.pods) > 0, now)
	f.asked = asked
	for _, p := range f.pods {
		p.misses, p.current = 0, f.isCurrent(p)
		p.measured = f.latency.running && p.answered && !p.current
		p.due = now.Add(jittered(firstDelay))
	}
	f.signal()
}

func (f *follower) isCurrent(p *pod) bool {
	if f.asked == nil {
		return false
	}
	reason, _ := f.asked.Judge(p.known)
	return reason == ""
}
