// SPDX-License-Identifier: Apache-2.0

// Package gateway_test has pods report their load with tokens that a real API server made, and reviews.
package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/testenv"
)

const testTimeout = 30 * time.Second

var (
	admin     kubernetes.Interface
	namespace string
	// balancer is the API as the balancer's service account sees it; away makes it unreachable.
	balancer kubernetes.Interface
	away     atomic.Bool
)

func TestGateway(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Gateway")
}

type flaky struct{ next http.RoundTripper }

func (f flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	if away.Load() {
		return nil, errors.New("the API server is away")
	}
	return f.next.RoundTrip(r)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	controlPlane, err := testenv.Start(context.WithoutCancel(ctx), testenv.Options{Log: GinkgoWriter, CRDPaths: []string{}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
	admin, err = kubernetes.NewForConfig(controlPlane.Config())
	Expect(err).NotTo(HaveOccurred())
	namespace, err = controlPlane.CreateNamespace(ctx, "shop-")
	Expect(err).NotTo(HaveOccurred())

	_, err = admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "balancer"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "checkout"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	user, err := controlPlane.ServiceAccount(namespace, "balancer")
	Expect(err).NotTo(HaveOccurred())
	user.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return flaky{next} })
	balancer, err = kubernetes.NewForConfig(user.Config)
	Expect(err).NotTo(HaveOccurred())
	// All that the balancer needs for it.
	_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reviewer"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reviewer"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reviewer"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "balancer", Namespace: namespace}}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
})

// newPod creates one, which no kubelet runs.
func newPod(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pod, err := admin.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "checkout-"},
		Spec:       corev1.PodSpec{ServiceAccountName: "checkout", Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

// newToken returns one of a service account, bound to a pod where there is one.
func newToken(ctx context.Context, account string, pod *corev1.Pod, audiences ...string) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: ptr.To[int64](600)}}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	answered, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return answered.Status.Token
}

// newAuthenticator asks for a token that is known after ttl.
func newAuthenticator(ttl time.Duration) *authn.Authenticator {
	return authn.New(authn.Options{Reviews: balancer.AuthenticationV1().TokenReviews(), PositiveTTL: ttl, NegativeTTL: ttl})
}
