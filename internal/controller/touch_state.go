// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rightRecheck is how soon a right that is missing is asked for again: nothing tells when somebody grants it.
const rightRecheck = 10 * time.Second

// touchRights remembers in which namespaces the operator may patch pods, which it asks the API server before it tries: a patch that is
// forbidden is an alarm in some clusters. The zero value knows of none. It is safe for concurrent use.
type touchRights struct {
	mu    sync.Mutex
	known map[string]touchRight
}

type touchRight struct {
	missing string
	asked   time.Time
}

// missing says why pods of a namespace may not be patched; "" where they may. That they may is believed until forget.
func (t *touchRights) missing(ctx context.Context, c client.Client, namespace string, now time.Time) (string, error) {
	t.mu.Lock()
	known, ok := t.known[namespace]
	t.mu.Unlock()
	if age := now.Sub(known.asked); ok && (known.missing == "" || age >= 0 && age < rightRecheck-time.Second) {
		return known.missing, nil
	}
	right := touchRight{asked: now}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "patch", Version: "v1", Resource: "pods"},
	}}
	err := c.Create(ctx, review)
	switch {
	case apierrors.IsForbidden(err): // All who log in may ask, unless somebody has taken that away.
		right.missing = "nor ask whether it may"
	case err != nil:
		return "", fmt.Errorf("asking whether pods of namespace %s may be patched: %w", namespace, err)
	case !review.Status.Allowed:
		right.missing = cmp.Or(review.Status.Reason, "no role grants it")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]touchRight{}
	}
	t.known[namespace] = right
	return right.missing, nil
}

// forget has a namespace asked about again.
func (t *touchRights) forget(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, namespace)
}

// touchRetries are the delays after which a pod that was not touched is tried again. One that refuses is tried no more after the last of
// them, since its kubelet is about to sync it; where the API server fails, the last one counts on.
var touchRetries = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

// touchRecords remembers what became of pods that the cache does not show as touched. No more depends on it than when a pod is tried again.
// The zero value knows of none. It is safe for concurrent use.
type touchRecords struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]touchRecord
}

// touchRecord is what became of a pod.
type touchRecord struct {
	uid   types.UID
	marks map[string]string
	// refusal says why it could not be touched; "" where it was. It is final where the same answer is to be expected again.
	refusal string
	final   bool
	// attempts is how often it was tried with these marks, until is when it may be again.
	attempts int
	until    time.Time
}

// note takes note of what became of an attempt.
func (t *touchRecords) note(of touchable, became touchRecord, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pods == nil {
		t.pods = map[types.NamespacedName]touchRecord{}
	}
	last := t.pods[of.key]
	became.uid, became.marks, became.attempts = of.uid, of.marks, 1
	if last.covers(of) {
		became.attempts = last.attempts + 1
	}
	became.until = now.Add(touchRetries[min(became.attempts, len(touchRetries))-1])
	t.pods[of.key] = became
}

// covers says that a record is about the same pod and all of the same marks.
func (r touchRecord) covers(of touchable) bool {
	if r.uid != of.uid || len(of.marks) == 0 {
		return false
	}
	for key, mark := range of.marks {
		if r.marks[key] != mark {
			return false
		}
	}
	return true
}

// over says that a pod is not to be tried with these marks, or not yet.
func (t *touchRecords) over(of touchable, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.pods[of.key]
	return r.covers(of) && (r.refusal == "" || r.spent() || now.Before(r.until))
}

func (r touchRecord) spent() bool { return r.final && r.attempts > len(touchRetries) }

// next returns when a pod is to be tried again; 0 for never.
func (t *touchRecords) next(key types.NamespacedName, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.pods[key]
	if !ok || r.refusal == "" || r.spent() {
		return 0
	}
	return max(r.until.Sub(now), time.Millisecond)
}

// refusal says why a pod could not be touched, and with which value of an annotation.
func (t *touchRecords) refusal(key types.NamespacedName, uid types.UID, annotation string) (string, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.pods[key]
	if r.uid != uid || r.refusal == "" {
		return "", ""
	}
	return r.refusal, r.marks[annotation]
}

// forget forgets a pod that is as it shall be, or gone.
func (t *touchRecords) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pods, key)
}
