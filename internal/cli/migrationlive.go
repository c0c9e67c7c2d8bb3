// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const (
	migrationKind = "RingMigration"
	actionKind    = "RingMigrationAction"
)

// watchPause is how long is waited before a watch that ended is begun again.
const watchPause = time.Second

// liveMigration is a RingMigration of a cluster.
type liveMigration struct {
	client          client.WithWatch
	namespace, name string
	now             func() time.Time
}

// newLiveMigration returns the RingMigration of a name in the cluster and namespace that flags and kubeconfig choose.
func newLiveMigration(flags *genericclioptions.ConfigFlags, name string) (liveMigration, error) {
	namespace, err := configNamespace(flags)
	if err != nil {
		return liveMigration{}, err
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return liveMigration{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c, err := newMigrationClient(config)
	return liveMigration{client: c, namespace: namespace, name: name, now: time.Now}, err
}

// migrationScheme has the kinds that the commands of a migration read and write.
func migrationScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authenticationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// newMigrationClient returns a client for those kinds. As [newReader], it discovers nothing.
func newMigrationClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := migrationScheme()
	if err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Event"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{hashRingKind, migrationKind, actionKind} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	return client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
}

// String is how messages call the migration.
func (l liveMigration) String() string {
	return fmt.Sprintf("%s %s/%s", migrationKind, l.namespace, l.name)
}

func (l liveMigration) key() client.ObjectKey {
	return client.ObjectKey{Namespace: l.namespace, Name: l.name}
}

// command returns a command line of this plugin about the migration.
func (l liveMigration) command(verb string) string {
	return fmt.Sprintf("kubectl hashring migration %s %s -n %s", verb, l.name, l.namespace)
}

// get reads the migration. The error of one that is not there says what there is.
func (l liveMigration) get(ctx context.Context) (*v1alpha1.RingMigration, error) {
	migration := &v1alpha1.RingMigration{}
	err := l.client.Get(ctx, l.key(), migration)
	switch {
	case err == nil:
		return migration, nil
	case noSuchKind(err):
		return nil, errNoMigrationCRD
	case apierrors.IsNotFound(err):
		return nil, l.notFound(ctx)
	}
	return nil, fmt.Errorf("reading %s: %w", l, err)
}

var errNoMigrationCRD = errors.New("this cluster has no RingMigrations: their CustomResourceDefinition (ringmigrations.ringwright.dev, in config/crd) is not installed")

// noSuchKind says whether an API server does not know the kind that it was asked for, which it says as it does that an object is not there.
func noSuchKind(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// follow calls visit with the migration as it is, and again with every change, until visit says that it has seen enough.
// Once it has been deleted visit is called with nil, and that is the last time.
func (l liveMigration) follow(ctx context.Context, visit func(*v1alpha1.RingMigration) (done bool, err error)) error {
	seen := false
	read := func(ctx context.Context) (*v1alpha1.RingMigration, error) {
		migration, err := l.get(ctx)
		if err != nil && seen && errors.As(err, new(*notFoundError)) {
			return nil, nil
		}
		seen = true
		return migration, err
	}
	return follow(ctx, l.client, l.key(), &v1alpha1.RingMigrationList{}, read, visit)
}

// follow visits an object and its changes. It reads the object again whenever a watch ends, which every watch does.
func follow[T interface {
	comparable
	client.Object
}](ctx context.Context, c client.WithWatch, key client.ObjectKey, list client.ObjectList, read func(context.Context) (T, error), visit func(T) (bool, error)) error {
	var none T
	for {
		object, err := read(ctx)
		if err != nil {
			return first(ctx.Err(), err)
		}
		if done, err := visit(object); done || err != nil || object == none {
			return err
		}
		if done, err := followWatch(ctx, c, key, list, object.GetResourceVersion(), visit); done || err != nil {
			return err
		}
		if err := pause(ctx, watchPause); err != nil {
			return err
		}
	}
}

// followWatch visits what a watch tells until that ends. Changes up to a resource version have been visited.
func followWatch[T interface {
	comparable
	client.Object
}](ctx context.Context, c client.WithWatch, key client.ObjectKey, list client.ObjectList, version string, visit func(T) (bool, error)) (done bool, err error) {
	var none T
	w, err := c.Watch(ctx, list, client.InNamespace(key.Namespace), &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name), Raw: &metav1.ListOptions{ResourceVersion: version},
	})
	if err != nil {
		return false, first(ctx.Err(), fmt.Errorf("watching %s: %w", key, err))
	}
	defer w.Stop()
	for {
		var event watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case event, open = <-w.ResultChan():
		}
		object, ok := event.Object.(T)
		if !open || !ok { // It ended, or tells an error, such as that the version is too old: what is there now is read again.
			return false, nil
		}
		if object.GetName() != key.Name {
			continue
		}
		if event.Type == watch.Deleted {
			object = none
		}
		if done, err := visit(object); done || err != nil || object == none {
			return true, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
