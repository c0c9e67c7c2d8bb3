// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/publish"
	"github.com/ringwright/ringwright/pkg/ring"
)

// recordKind is the kind of the objects that the revisions of a ring are kept in.
const recordKind = "ControllerRevision"

// recordPage is how many records are read at a time: each can have a recipe of a megabyte.
const recordPage = 10

// liveRing is a HashRing of a cluster with the revisions that are kept of it.
type liveRing struct {
	client          client.Client
	namespace, name string
}

// newClient returns a client for the kinds that commands read. As [newReader], it discovers nothing.
func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind(recordKind), meta.RESTScopeNamespace)
	for _, kind := range []string{hashRingKind, "WeightPolicy", "WeightSet"} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
}

// oneRing refuses all arguments but one, the name of a HashRing.
func oneRing(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return usagef(cmd, "no ring given: name a HashRing")
	case len(args) > 1:
		return usagef(cmd, "unexpected argument %q", args[1])
	}
	return nil
}

// newLiveRing returns the HashRing of a name in the cluster and namespace that flags and kubeconfig choose.
func newLiveRing(flags *genericclioptions.ConfigFlags, name string) (liveRing, error) {
	namespace, err := configNamespace(flags)
	if err != nil {
		return liveRing{}, err
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return liveRing{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c, err := newClient(config)
	return liveRing{client: c, namespace: namespace, name: name}, err
}

// String is how messages call the ring.
func (l liveRing) String() string { return fmt.Sprintf("HashRing %s/%s", l.namespace, l.name) }

func (l liveRing) get(ctx context.Context) (*v1alpha1.HashRing, error) {
	hashRing := &v1alpha1.HashRing{}
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: l.name}, hashRing); err != nil {
		return nil, fmt.Errorf("reading %s: %w", l, err)
	}
	return hashRing, nil
}

// keptRevision is a revision that is kept, without its recipe.
type keptRevision struct {
	number  int64
	digest  string
	created metav1.Time
	// config and points are what its recipe says, without the points themselves; problem is why that cannot be told.
	config  ring.Config
	points  uint64
	problem error
}

// revisions returns the revisions that are kept, in ascending order.
func (l liveRing) revisions(ctx context.Context) ([]keptRevision, error) {
	var kept []keptRevision
	list := &appsv1.ControllerRevisionList{}
	for first := true; first || list.Continue != ""; first = false {
		err := l.client.List(ctx, list, client.InNamespace(l.namespace), client.Limit(recordPage), client.Continue(list.Continue),
			client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelRing: l.name})
		if err != nil {
			return nil, fmt.Errorf("listing the ControllerRevisions of %s: %w", l, err)
		}
		for i := range list.Items {
			if object := &list.Items[i]; publish.IsRecord(l.name, object) {
				kept = append(kept, summarize(object))
			}
		}
	}
	slices.SortFunc(kept, func(a, b keptRevision) int { return cmp.Compare(a.number, b.number) })
	return kept, nil
}

func summarize(object *appsv1.ControllerRevision) keptRevision {
	kept := keptRevision{number: object.Revision, created: object.CreationTimestamp}
	record, err := publish.ReadRecord(object)
	if err == nil {
		kept.digest = record.Digest
		kept.config, err = ring.ReadConfig(record.Recipe)
		kept.points = plan.Request{Config: kept.config}.Points()
	}
	if err != nil {
		kept.problem = fmt.Errorf("ControllerRevision %s/%s: %w", object.Namespace, object.Name, err)
	}
	return kept
}

// side returns the ring of a revision that is kept, with the bytes that were published.
func (l liveRing) side(ctx context.Context, revision int64) (*planSide, error) {
	name := plan.RecordName(l.name, revision)
	object := &appsv1.ControllerRevision{}
	err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) || err == nil && !publish.IsRecord(l.name, object) {
		return nil, l.notKept(ctx, revision)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ControllerRevision %s/%s: %w", l.namespace, name, err)
	}
	r, err := reopen(object)
	if err != nil {
		return nil, fmt.Errorf("ControllerRevision %s/%s: %w", l.namespace, name, err)
	}
	return l.named(newPlanSide(r, fmt.Sprintf("revision %d", revision))), nil
}

// named says whose ring a side is. It leaves the addresses out, without a note that some are missing: revisions have none.
func (l liveRing) named(side *planSide) *planSide {
	side.name, side.addresses = l.namespace+"/"+l.name, map[string]string{}
	return side
}

// reopen opens the ring that a record keeps from the snapshot that was published: the recipe, or what is built from it.
func reopen(object *appsv1.ControllerRevision) (*ring.Ring, error) {
	record, err := publish.ReadRecord(object)
	if err != nil {
		return nil, err
	}
	r, err := plan.OpenSnapshot(record.Recipe)
	if err != nil || r.Digest() == record.Digest {
		return r, err
	}
	if r, err = ring.Build(r.Config()); err != nil {
		return nil, err
	}
	if r.Digest() != record.Digest {
		return nil, fmt.Errorf("its recipe gives the snapshot %s, it says %s", r.Digest(), record.Digest)
	}
	return r, nil
}

// notKept says that a revision is not there, and which are.
func (l liveRing) notKept(ctx context.Context, revision int64) error {
	kept, err := l.revisions(ctx)
	if err != nil {
		return err
	}
	if len(kept) == 0 {
		return fmt.Errorf("revision %d of %s is not kept, and no other is", revision, l)
	}
	numbers := make([]string, len(kept))
	for i, k := range kept {
		numbers[i] = strconv.FormatInt(k.number, 10)
	}
	return fmt.Errorf("revision %d of %s is not kept: it must be one of %s", revision, l, strings.Join(numbers, ", "))
}

// published returns the ring that is published.
func (l liveRing) published(ctx context.Context) (*planSide, error) {
	side, err := readSide(ctx, cluster{reader: l.client, namespace: l.namespace, name: l.name, again: publicationTime})
	if err != nil {
		return nil, err
	}
	if side.ring == nil {
		return nil, fmt.Errorf("%s has published nothing", l)
	}
	_, revision, _ := strings.Cut(side.origin, ", ")
	side.origin = strings.TrimSpace(revision + " (published)")
	return l.named(side), nil
}
