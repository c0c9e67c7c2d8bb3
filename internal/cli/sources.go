// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// checkBackendsKnown refuses a manifest that does not say all backends of its ring. A ring of those that it does say is
// published nowhere, and what "plan" would find to move to it moves nowhere either.
func checkBackendsKnown(hashRing *v1alpha1.HashRing) error {
	sources := hashRing.Spec.BackendsFrom
	if len(sources) == 0 {
		return nil
	}
	more := ""
	if len(sources) > 1 {
		more = fmt.Sprintf(" and %s", plural(len(sources)-1, "other Service", "other Services"))
	}
	return fmt.Errorf("HashRing %s/%s: spec.backendsFrom takes backends from Service %s%s: only the cluster knows which, so the ring cannot be "+
		"built from the manifest; \"size --backends\" takes their number, and lookup, inspect, verify without -f, history and diff read "+
		"what is published", hashRing.Namespace, hashRing.Name, sources[0].Service.Name, more)
}
