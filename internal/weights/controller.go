// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// +kubebuilder:rbac:groups=ringwright.dev,resources=weightpolicies,verbs=list;watch
// +kubebuilder:rbac:groups=ringwright.dev,resources=hashrings,verbs=get
// +kubebuilder:rbac:groups=ringwright.dev,resources=weightpolicies/status,verbs=update
// +kubebuilder:rbac:groups=ringwright.dev,resources=weightsets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;create;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=metrics.k8s.io,resources=pods,verbs=list
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Shards knows which policies this replica owns.
type Shards interface{ Owns(policy string) bool }

// Reconciler looks after the policies that this replica owns.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, past the cache.
	Live     client.Reader
	Resolver *Resolver
	Shards   Shards
	Store    *loadreport.Store
	Sources  *Sources
	// Board has what all owners announce, and Own what this one does, for the others.
	Board, Own *Board
	Recorder   events.EventRecorder
	Clock      clock.Clock
	Metrics    *Metrics
	// Self is the name of this replica.
	Self string
	// Pace divides the intervals at which weights are computed and things are written, 1 by default; tests and demos have less time.
	Pace int

	wake chan event.GenericEvent
	// shards has a value when the owners have changed.
	shards   chan struct{}
	mu       sync.Mutex
	holdings map[string]*holding
}

// Reconcile looks at one policy: resolve, collect, advance, make known, store, report. What is decided is decided by holding's methods.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	policy := &v1alpha1.WeightPolicy{}
	if err := r.Client.Get(ctx, req.NamespacedName, policy); apierrors.IsNotFound(err) {
		return r.bury(ctx, req.NamespacedName)
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading WeightPolicy %s: %w", req.NamespacedName, err)
	}
	if !r.Shards.Owns(req.String()) {
		r.drop(req.String())
		return ctrl.Result{RequeueAfter: r.ownershipCheck()}, nil
	}
	next, err := r.look(ctx, policy)
	var problem *targetError
	switch {
	case errors.As(err, &problem):
		next, err = statusInterval/time.Duration(max(1, r.Pace)), r.reportProblem(ctx, policy, problem)
	case errors.Is(err, errLost): // Whether the policy is still this replica's its shard will tell.
		log.FromContext(ctx).Info("The policy is looked at anew", "why", err.Error())
		r.drop(req.String())
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) { // What was read was older than what there is. It is read again.
		return ctrl.Result{RequeueAfter: min(time.Second, max(next, time.Millisecond))}, nil
	}
	return ctrl.Result{RequeueAfter: next}, err
}

// look does all that is due for a policy, and returns in how long to look again.
func (r *Reconciler) look(ctx context.Context, policy *v1alpha1.WeightPolicy) (time.Duration, error) {
	began := r.Clock.Now()
	config, err := configOf(&policy.Spec)
	if err != nil {
		return 0, refused(v1alpha1.ReasonInvalidSpec, "%v", err)
	}
	config.Interval /= time.Duration(max(1, r.Pace))
	if err := r.checkTaken(ctx, policy); err != nil {
		return 0, err
	}
	endpoints, err := r.Resolver.Resolve(ctx, policy)
	if err != nil {
		return 0, err
	}
	h, err := r.hold(ctx, policy, endpoints)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spec = policy
	if h.pin, err = r.readPin(ctx, policy, h.pin); err != nil {
		return 0, err
	}
	r.Sources.Follow(ctx, policy, endpoints)
	c := cycle{now: r.Clock.Now(), policy: policy, config: config, endpoints: endpoints}
	if h.due(c) {
		defer func() { r.Metrics.updated(r.Clock.Since(began)) }()
		if h.coarse, err = r.Resolver.coarse(ctx, policy); err != nil {
			return 0, err
		}
		c.readings = r.Store.Collect(policyName(policy), c.now, later(h.updatedAt, c.now.Add(-config.StaleAfter)))
	}
	changed, err := h.advance(c)
	if err != nil {
		return 0, refused(v1alpha1.ReasonInvalidSpec, "%v", err)
	}
	if changed || !h.announced {
		h.announced = true
		announcement := Announcement{Policy: policyName(policy), Epoch: h.epoch, Version: h.version, Weights: h.served}
		r.Own.Put(announcement)
		r.Board.Put(announcement)
	}
	r.Metrics.observe(policyName(policy), h)
	writes, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return h.nextLook(c), errors.Join(r.keep(writes, policy, h), r.report(writes, policy, h))
}

// keep writes what has to outlive this process, at its pace.
func (r *Reconciler) keep(ctx context.Context, policy *v1alpha1.WeightPolicy, h *holding) error {
	now, pace := r.Clock.Now(), time.Duration(max(1, r.Pace))
	if h.unlooked() {
		return nil // What is stored knows more.
	}
	if now.Sub(h.stored.at) >= storeInterval/pace || h.stored.file != fileOf(policy) {
		if err := r.storeSets(ctx, policy, h); err != nil {
			return err
		}
	}
	return errors.Join(r.keepRecord(ctx, policy, h), r.keepFile(ctx, policy, h))
}

// report writes the status of a policy where it is due.
func (r *Reconciler) report(ctx context.Context, policy *v1alpha1.WeightPolicy, h *holding) error {
	now := r.Clock.Now()
	name := policyName(policy)
	status := h.status(policy, r.Self, sourced{fresh: r.Store.Fresh(name, now), errors: r.Store.SourceErrors(name)}, now)
	if !urgent(&policy.Status, &status) && now.Sub(h.pace.status) < statusInterval/time.Duration(max(1, r.Pace)) {
		return nil
	}
	h.pace.status = now
	return r.writeStatus(ctx, policy, status)
}

// reportProblem writes the status of a policy that somebody has to mend.
func (r *Reconciler) reportProblem(ctx context.Context, policy *v1alpha1.WeightPolicy, problem *targetError) error {
	return r.writeStatus(ctx, policy, failedStatus(policy, problem, r.Clock.Now()))
}

// writeStatus writes a status that differs, and then tells of the conditions that have changed.
func (r *Reconciler) writeStatus(ctx context.Context, policy *v1alpha1.WeightPolicy, status v1alpha1.WeightPolicyStatus) error {
	if equality.Semantic.DeepEqual(policy.Status, status) {
		r.Metrics.conditionsOf(policy)
		return nil
	}
	before := policy.Status
	changed := policy.DeepCopy()
	changed.Status = status
	if err := r.Client.Status().Update(ctx, changed, client.FieldOwner(v1alpha1.FieldManagerBalancer)); err != nil {
		return fmt.Errorf("writing the status of WeightPolicy %s: %w", client.ObjectKeyFromObject(policy), err)
	}
	r.tell(changed, &before)
	return nil
}

// hold returns what is remembered of a policy, taking it over first where nothing is.
func (r *Reconciler) hold(ctx context.Context, policy *v1alpha1.WeightPolicy, endpoints []Endpoint) (*holding, error) {
	name := policyName(policy)
	r.mu.Lock()
	h := r.holdings[name]
	r.mu.Unlock()
	if h != nil && h.uid == policy.UID {
		return h, nil
	}
	h, err := r.acquire(ctx, policy, endpoints)
	if err != nil {
		return nil, err
	}
	r.Metrics.tookOver()
	log.FromContext(ctx).Info("Took the policy over", "epoch", h.epoch, "endpoints", len(h.served), "version", h.version)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holdings == nil {
		r.holdings = map[string]*holding{}
	}
	r.holdings[name] = h
	r.Metrics.owned(len(r.holdings))
	return h, nil
}

// drop forgets a policy that this replica does not own any more.
func (r *Reconciler) drop(policy string) {
	r.Own.Remove(policy)
	r.Sources.Drop(policy)
	r.Store.DeletePolicy(policy)
	r.Metrics.forget(policy)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.holdings, policy)
	r.Metrics.owned(len(r.holdings))
}

// ownershipCheck is in how long a policy of another replica is looked at again, if nothing is heard until then.
func (r *Reconciler) ownershipCheck() time.Duration { return time.Minute }

func policyName(policy *v1alpha1.WeightPolicy) string { return policy.Namespace + "/" + policy.Name }
