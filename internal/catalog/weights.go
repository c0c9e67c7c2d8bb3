// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// WeightPolicy is a WeightPolicy that is there. Its version is no part of it: it changes all the time.
type WeightPolicy struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Target is the kind and name of the target, with the port of a Service that names one, such as "Service/checkout:grpc".
	Target string `json:"target"`
	// Endpoints is how many endpoints the target has; absent before the first status.
	Endpoints int32 `json:"endpoints,omitempty"`
	// State is the reason of condition Ready; absent before the first status.
	State string `json:"state,omitempty"`
}

// WeightTombstone is what is left of a WeightPolicy that is gone.
type WeightTombstone struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Ring is the HashRing whose backends have the weights; absent where they are of a Service.
	Ring string `json:"ring,omitempty"`
	// Version is that of the weights, Sets how many WeightSets hold them.
	Version int64 `json:"version"`
	Sets    int   `json:"sets"`
	// Until is when they are deleted, in the form of RFC 3339; absent until the balancer has said so.
	Until string `json:"until,omitempty"`
}

// WithWeights returns the catalog with the WeightPolicies of a cluster, and with what is left of those that are gone: in the order of namespace
// and name. It keeps nothing of them. Of the WeightSets no endpoint is looked at.
func (c Catalog) WithWeights(policies []v1alpha1.WeightPolicy, sets []v1alpha1.WeightSet) Catalog {
	present := map[[2]string]bool{}
	for i := range policies {
		present[[2]string{policies[i].Namespace, policies[i].Name}] = true
		c.WeightPolicies = append(c.WeightPolicies, OfPolicy(&policies[i]))
	}
	marks := map[[2]string]WeightTombstone{}
	for i := range sets {
		key := [2]string{sets[i].Namespace, sets[i].Policy.Name}
		if !present[key] {
			marks[key] = mergeTombstone(marks[key], ofSet(&sets[i]))
		}
	}
	for _, mark := range marks {
		c.WeightTombstones = append(c.WeightTombstones, mark)
	}
	slices.SortFunc(c.WeightPolicies, func(a, b WeightPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(c.WeightTombstones, func(a, b WeightTombstone) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return c
}

// OfPolicy returns what the catalog says of a WeightPolicy.
func OfPolicy(p *v1alpha1.WeightPolicy) WeightPolicy {
	listed := WeightPolicy{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Target: Target(p.Spec.TargetRef)}
	if e := p.Status.Endpoints; e != nil {
		listed.Endpoints = e.Total
	}
	if ready := meta.FindStatusCondition(p.Status.Conditions, string(v1alpha1.ConditionReady)); ready != nil {
		listed.State = ready.Reason
	}
	return listed
}

// Target names the target of a WeightPolicy in short, such as "Service/checkout:grpc".
func Target(t v1alpha1.WeightTarget) string {
	text := string(cmp.Or(t.Kind, v1alpha1.TargetService)) + "/" + t.Name
	if t.Port != nil {
		text += ":" + t.Port.String()
	}
	return text
}

func ofSet(s *v1alpha1.WeightSet) WeightTombstone {
	mark := WeightTombstone{Namespace: s.Namespace, Name: s.Policy.Name, UID: s.Policy.UID, Ring: s.Policy.Ring, Version: s.Version, Sets: 1}
	if s.TombstoneUntil != nil {
		mark.Until = s.TombstoneUntil.UTC().Format(time.RFC3339)
	}
	return mark
}

// mergeTombstone adds a WeightSet to those of the same name before it: the newest version counts, and the last end.
func mergeTombstone(before, set WeightTombstone) WeightTombstone {
	if before.Sets == 0 {
		return set
	}
	sets, until := before.Sets+1, max(before.Until, set.Until)
	if cmp.Or(cmp.Compare(before.Version, set.Version), cmp.Compare(before.UID, set.UID)) >= 0 {
		set = before
	}
	set.Sets, set.Until = sets, until
	return set
}
