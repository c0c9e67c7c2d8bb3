// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// count tells the metrics what became of a step. A conflict is no failure: the work goes on as soon as the cache is there.
func (r *HashRingReconciler) count(ring *v1alpha1.HashRing, out outcome) {
	key, d := client.ObjectKeyFromObject(ring), out.decision
	switch {
	case isConflict(out.failure):
		r.Metrics.Waits(key, out.now)
	case out.failure != nil:
		r.Metrics.Failed(key, out.now)
	case d.Wait > 0:
		r.Metrics.Waits(key, out.now.Add(d.Wait))
	case d.Restores:
		r.Metrics.Restored(len(d.Writes) + len(d.Records))
	case len(d.Writes) > 0:
		r.Metrics.Published(key, d.Moved, out.now, r.Clock.Now())
	default:
		r.Metrics.Settled(key)
	}
}
