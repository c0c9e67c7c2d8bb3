// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User is an identity that RBAC decides about.
type User struct {
	// Config is for clients in this process. The client-side limit of requests is
	// high enough for tests.
	Config *rest.Config
	// Kubeconfig is a kubeconfig file, for other processes.
	Kubeconfig []byte
}

// User returns an identity with the given name and groups, and with no permission that is not
// bound to one of them. It is a client certificate: nothing is created in the API server.
func (cp *ControlPlane) User(name string, groups ...string) (*User, error) {
	base := &rest.Config{QPS: cp.env.Config.QPS, Burst: cp.env.Config.Burst}
	user, err := cp.env.AddUser(envtest.User{Name: name, Groups: groups}, base)
	if err != nil {
		return nil, fmt.Errorf("adding user %q: %w", name, err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of user %q: %w", name, err)
	}
	return &User{Config: user.Config(), Kubeconfig: kubeconfig}, nil
}

// ServiceAccount returns the identity that a pod with the given service account has:
// with it the manager runs under the RBAC rules that it is shipped with. The account
// need not exist.
func (cp *ControlPlane) ServiceAccount(namespace, name string) (*User, error) {
	return cp.User("system:serviceaccount:"+namespace+":"+name,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

// CreateNamespace creates a namespace and returns its name: prefix with a random suffix, so
// that tests do not meet. It is never deleted, as deletion would not complete.
func (cp *ControlPlane) CreateNamespace(ctx context.Context, prefix string) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	if err := cp.client.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return namespace.Name, nil
}
