// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// livePolicy is a WeightPolicy in a cluster.
type livePolicy struct {
	client    client.Client
	namespace string
	name      string
	now       func() time.Time
}

// newLivePolicy returns the WeightPolicy of a name in the cluster and namespace that flags and kubeconfig choose.
func newLivePolicy(flags *genericclioptions.ConfigFlags, name string) (livePolicy, error) {
	ring, err := newLiveRing(flags, name)
	return livePolicy{client: ring.client, namespace: ring.namespace, name: name, now: time.Now}, err
}

// onePolicy refuses all arguments but one, the name of a WeightPolicy.
func onePolicy(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return usagef(cmd, "no policy given: name a WeightPolicy")
	case len(args) > 1:
		return usagef(cmd, "unexpected argument %q", args[1])
	}
	return nil
}

// String is how messages call the policy.
func (l livePolicy) String() string { return fmt.Sprintf("WeightPolicy %s/%s", l.namespace, l.name) }

// command returns a command about the policy.
func (l livePolicy) command(verb string) string {
	return fmt.Sprintf("kubectl hashring weights %s %s -n %s", verb, l.name, l.namespace)
}

func (l livePolicy) get(ctx context.Context) (*v1alpha1.WeightPolicy, error) {
	policy := &v1alpha1.WeightPolicy{}
	err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: l.name}, policy)
	if apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return nil, fmt.Errorf("reading %s: the cluster has no WeightPolicies: the CRDs of Ringwright are missing there, or are older than this program", l)
	}
	if apierrors.IsNotFound(err) {
		return nil, l.notFound(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", l, err)
	}
	return policy, nil
}

// notFound says that the policy does not exist, and which one may be meant.
func (l livePolicy) notFound(ctx context.Context) error {
	message := fmt.Sprintf("%s does not exist", l)
	list := &v1alpha1.WeightPolicyList{}
	if err := l.client.List(ctx, list, client.InNamespace(l.namespace)); err != nil {
		return &notFoundError{message}
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
		if p.Spec.TargetRef.Name == l.name {
			return &notFoundError{fmt.Sprintf("%s: that is the name of a %s, which WeightPolicy %s balances: name that", message, p.Spec.TargetRef.Kind, p.Name)}
		}
	}
	slices.Sort(names)
	switch near := nearest(l.name, names); {
	case len(names) == 0:
		message += fmt.Sprintf(": there is none in namespace %s", l.namespace)
	case near != "":
		message += fmt.Sprintf(": did you mean %s?", near)
	default:
		message += fmt.Sprintf(": namespace %s has %s", l.namespace, clip(names, maxSuggested))
	}
	return &notFoundError{message}
}

// servedWeights are the WeightSets of a policy.
type servedWeights struct {
	version   int64
	endpoints []v1alpha1.WeightedEndpoint
	// notes say what is odd about the WeightSets.
	notes []string
}

// weights returns what is served by the WeightSets, as far as they belong together: of several versions the newest that is complete, or the
// newest at all.
func (l livePolicy) weights(ctx context.Context) (servedWeights, error) {
	list := &v1alpha1.WeightSetList{}
	err := l.client.List(ctx, list, client.InNamespace(l.namespace), client.MatchingLabels{v1alpha1.LabelWeightPolicy: l.name})
	if err != nil {
		return servedWeights{}, fmt.Errorf("listing the WeightSets of %s: %w", l, err)
	}
	byVersion := map[int64][]v1alpha1.WeightSet{}
	for _, s := range list.Items {
		byVersion[s.Version] = append(byVersion[s.Version], s)
	}
	var served servedWeights
	complete, found := false, false
	for version, sets := range byVersion {
		whole := len(sets) == int(sets[0].Sets)
		if !found || cmp.Or(compareBool(whole, complete), cmp.Compare(version, served.version)) > 0 {
			served.version, complete, found = version, whole, true
		}
	}
	sets := byVersion[served.version]
	slices.SortFunc(sets, func(a, b v1alpha1.WeightSet) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range sets {
		served.endpoints = append(served.endpoints, s.Endpoints...)
	}
	if found && !complete {
		served.notes = append(served.notes, fmt.Sprintf("%d of %d WeightSets of version %d are there: the balancer is writing them, or somebody has deleted one",
			len(sets), sets[0].Sets, served.version))
	}
	return served, nil
}

func compareBool(a, b bool) int {
	number := map[bool]int{true: 1}
	return number[a] - number[b]
}
