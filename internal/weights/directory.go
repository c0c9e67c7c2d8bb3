// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"slices"
	"strings"
	"sync"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/gateway"
)

// Directory says which endpoints a pod is. It implements [gateway.Directory].
type Directory struct {
	mu       sync.RWMutex
	policies map[string][]string // The UIDs of the pods of a policy.
	pods     map[string][]gateway.Target
}

// NewDirectory returns an empty one.
func NewDirectory() *Directory {
	return &Directory{policies: map[string][]string{}, pods: map[string][]gateway.Target{}}
}

// Endpoints implements gateway.Directory.
func (d *Directory) Endpoints(podUID string) []gateway.Target {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Clone(d.pods[podUID])
}

// Set replaces the endpoints of a policy: those that are pods, where pods push.
func (d *Directory) Set(policy *v1alpha1.WeightPolicy, endpoints []Endpoint) {
	name := policyName(policy)
	source, pushes := sourceOf(policy, v1alpha1.SourcePush)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(name)
	if !pushes {
		return
	}
	target := gateway.Target{Policy: name, CustomMetric: policy.Spec.Load.CustomMetric, Interval: interval(source)}
	for _, e := range endpoints {
		if e.PodUID == "" {
			continue
		}
		target.Endpoint = e.ID
		targets := append(d.pods[e.PodUID], target)
		slices.SortFunc(targets, func(a, b gateway.Target) int {
			return strings.Compare(a.Policy+" "+a.Endpoint, b.Policy+" "+b.Endpoint)
		})
		d.pods[e.PodUID] = targets
		d.policies[name] = append(d.policies[name], e.PodUID)
	}
}

// Remove forgets a policy.
func (d *Directory) Remove(policy string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(policy)
}

func (d *Directory) remove(policy string) {
	for _, uid := range d.policies[policy] {
		left := slices.DeleteFunc(d.pods[uid], func(t gateway.Target) bool { return t.Policy == policy })
		if len(left) == 0 {
			delete(d.pods, uid)
		} else {
			d.pods[uid] = left
		}
	}
	delete(d.policies, policy)
}
