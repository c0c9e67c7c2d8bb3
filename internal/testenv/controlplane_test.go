// SPDX-License-Identifier: Apache-2.0

//go:build unix

package testenv

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// noCRDs starts a control plane without CRDs: these tests are about the machinery.
func noCRDs(t *testing.T) Options {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set, and a unit test does not build an API server")
	}
	return Options{CRDPaths: []string{}, Log: t.Output()}
}

func TestControlPlane(t *testing.T) {
	cp, err := Start(t.Context(), noCRDs(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() }) // For the subtests' fatal errors.

	t.Run("listens on the loopback interface only", func(t *testing.T) {
		server, err := url.Parse(cp.Config().Host)
		if err != nil {
			t.Fatal(err)
		}
		if ip := net.ParseIP(server.Hostname()); !ip.IsLoopback() {
			t.Errorf("the API server is at %s", cp.Config().Host)
		}
	})
	t.Run("namespaces are unique", func(t *testing.T) {
		first, err := cp.CreateNamespace(t.Context(), "same-")
		if err != nil {
			t.Fatal(err)
		}
		second, err := cp.CreateNamespace(t.Context(), "same-")
		if err != nil {
			t.Fatal(err)
		}
		if first == second || !strings.HasPrefix(first, "same-") {
			t.Errorf("namespaces %q and %q", first, second)
		}
	})
	t.Run("RBAC decides about users", func(t *testing.T) { testRBAC(t, cp) })
	t.Run("nothing is left", func(t *testing.T) { testStop(t, cp) })
}

// testRBAC binds one service account, and sees that it and nobody else is let in. It uses the
// kubeconfig, as another process would.
func testRBAC(t *testing.T, cp *ControlPlane) {
	namespace, err := cp.CreateNamespace(t.Context(), "rbac-")
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: "view", Namespace: namespace}
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "bound", Namespace: namespace}},
		},
	} {
		if err := cp.client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	for name, allowed := range map[string]bool{"bound": true, "other": false} {
		user, err := cp.ServiceAccount(namespace, name)
		if err != nil {
			t.Fatal(err)
		}
		err = listConfigMaps(t.Context(), user.Kubeconfig, namespace)
		if allowed && err != nil || !allowed && !apierrors.IsForbidden(err) {
			t.Errorf("service account %s: %v, want allowed = %v", name, err, allowed)
		}
	}
	if err := listConfigMaps(t.Context(), cp.Kubeconfig(), namespace); err != nil {
		t.Errorf("the admin: %v", err)
	}
}

// listConfigMaps connects as the user of kubeconfig.
func listConfigMaps(ctx context.Context, kubeconfig []byte, namespace string) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
}

func testStop(t *testing.T, cp *ControlPlane) {
	c, err := client.NewWithWatch(cp.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}) // As a manager that is still running has.
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range 2 {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	}
	wantNothingLeft(t, cp)
}

// wantNothingLeft checks what Stop promises.
func wantNothingLeft(t *testing.T, cp *ControlPlane) {
	t.Helper()
	if _, err := os.Stat(cp.guard.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", cp.guard.dir, err)
	}
	if conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(cp.Config().Host, "https://"), "/")); err == nil {
		_ = conn.Close()
		t.Error("the API server is left")
	}
}

func TestControlPlaneEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cp, err := Start(ctx, noCRDs(t))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cp.Stop(); err != nil { // It waits for the stop that the context began.
		t.Error(err)
	}
	wantNothingLeft(t, cp)
}

func TestStartInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	opts := noCRDs(t)
	opts.Configure = func(*envtest.Environment) { cancel() }
	if _, err := Start(ctx, opts); !errors.Is(err, context.Canceled) {
		t.Errorf("Start = %v, want context.Canceled", err)
	}
}

// A start that fails says why, which envtest alone does not.
func TestStartFailure(t *testing.T) {
	opts := noCRDs(t)
	log.SetLogger(logr.Discard()) // envtest logs each of its attempts.
	opts.Configure = func(env *envtest.Environment) {
		env.ControlPlane.APIServer.Configure().Set("no-such-flag", "true")
	}
	_, err := Start(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("Start = %v, want the API server's reason", err)
	}
}

func TestStartWithoutPrograms(t *testing.T) {
	opts := Options{CRDPaths: []string{}, Assets: filepath.Join(t.TempDir(), "none"), Log: t.Output()}
	if _, err := Start(t.Context(), opts); err == nil {
		t.Error("Start succeeded")
	}
}
