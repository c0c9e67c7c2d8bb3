// SPDX-License-Identifier: Apache-2.0

// Package weights_test balances load with real balancers, as processes of their own, and a real API server: pods report by their own tokens,
// and clients get their weights by xDS.
package weights_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

const (
	systemNamespace = "ringwright-system"
	serviceAccount  = "ringwright-balancer"
	// pace makes an update take half a second in place of 10 s, and WeightSets be written every 3 s.
	pace = "20"
	// lease is that of an owner, in place of 15 s.
	lease = 3 * time.Second
)

var (
	controlPlane *testenv.ControlPlane
	admin        client.WithWatch
	auditLog     string
	// program is the balancer, kubeconfig and token are what it runs with.
	program, kubeconfig, token string
	// plugin is kubectl hashring.
	plugin, adminKubeconfig string
)

func TestWeights(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "weights")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	root, err := testenv.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	startControlPlane()
	scheme, err := manager.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.NewWithWatch(controlPlane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(controlPlane.Install(ctx, filepath.Join(root, "config", "default"), nil)).To(Succeed())

	account, err := controlPlane.ServiceAccount(systemNamespace, serviceAccount)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	kubeconfig, token = filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "token")
	Expect(os.WriteFile(kubeconfig, account.Kubeconfig, 0o600)).To(Succeed())
	adminKubeconfig = filepath.Join(dir, "admin")
	Expect(os.WriteFile(adminKubeconfig, controlPlane.Kubeconfig(), 0o600)).To(Succeed())
	Expect(os.WriteFile(token, []byte(tokenOf(ctx, systemNamespace, serviceAccount, nil)), 0o600)).To(Succeed())
	program, err = gexec.Build("github.com/ringwright/ringwright/cmd/balancer",
		"-ldflags", "-X main.loopback=true -X main.pace="+pace+" -X main.leaseDuration="+lease.String())
	Expect(err).NotTo(HaveOccurred())
	plugin, err = gexec.Build("github.com/ringwright/ringwright/cmd/kubectl-hashring")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)
})

// startControlPlane starts an API server that writes down every request of the balancer.
func startControlPlane() {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	auditLog = filepath.Join(dir, "audit.log")
	policy := filepath.Join(dir, "policy.yaml")
	Expect(os.WriteFile(policy, fmt.Appendf(nil, `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  omitStages: [RequestReceived, ResponseStarted]
  users: ["system:serviceaccount:%s:%s"]
- level: None
`, systemNamespace, serviceAccount), 0o600)).To(Succeed())
	var err error
	controlPlane, err = testenv.Start(context.Background(), testenv.Options{
		CRDPaths: []string{}, // They come with the rest of config/default.
		Configure: func(env *envtest.Environment) {
			env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", auditLog)
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
}

// tokenOf returns a token for the balancer's audience, bound to a pod if there is one.
func tokenOf(ctx context.Context, namespace, name string, pod *corev1.Pod) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{authn.DefaultAudience}, ExpirationSeconds: ptr.To[int64](3600),
	}}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(admin.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	name, err := controlPlane.CreateNamespace(ctx, "weights-")
	Expect(err).NotTo(HaveOccurred())
	return name
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// What the policies say is what one wants to know of a spec that has failed.
var _ = JustAfterEach(func(ctx SpecContext) {
	if !CurrentSpecReport().Failed() {
		return
	}
	policies := &v1alpha1.WeightPolicyList{}
	Expect(admin.List(ctx, policies)).To(Succeed())
	for i := range policies.Items {
		text, err := yaml.Marshal(policies.Items[i].Status)
		Expect(err).NotTo(HaveOccurred())
		GinkgoWriter.Printf("%s/%s:\n%s\n", policies.Items[i].Namespace, policies.Items[i].Name, text)
	}
})
