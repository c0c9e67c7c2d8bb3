// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/internal/plan"
)

// Known returns what is known of the consumers of a ring that [Poller.Follow] follows: nil for another one, and until all have been
// asked once.
func (p *Poller) Known(ring types.NamespacedName) *plan.Consumers {
	p.mu.Lock()
	f := p.followers[ring]
	p.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.consumers()
}
