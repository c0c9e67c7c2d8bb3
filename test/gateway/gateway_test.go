// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/gateway"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/pkg/orcareport"
)

const policy = "shop/checkout"

// pods is a directory of the pods that a policy balances.
type pods []*corev1.Pod

func (p pods) Endpoints(uid string) []gateway.Target {
	for _, one := range p {
		if string(one.UID) == uid {
			return []gateway.Target{{Policy: policy, Endpoint: uid, Interval: time.Second}}
		}
	}
	return nil
}

// owner is the replica at an address; "" is the one that asks.
type owner string

func (o owner) Owner(string) (string, bool, bool) { return string(o), o == "", true }

// newStore has the pods as endpoints.
func newStore(list ...*corev1.Pod) *loadreport.Store {
	store := loadreport.NewStore(loadreport.Limits{}, nil)
	spec := loadreport.PolicySpec{Policy: policy, Sources: []loadreport.Source{{Type: v1alpha1.SourcePush, StaleAfter: time.Minute}}}
	for _, pod := range list {
		spec.Endpoints = append(spec.Endpoints, loadreport.Endpoint{ID: string(pod.UID), Name: pod.Name})
	}
	store.SetPolicy(spec)
	return store
}

// collect returns what is known of all endpoints.
func collect(store *loadreport.Store) []loadreport.Reading {
	now := time.Now()
	return store.Collect(policy, now, now.Add(-time.Minute))
}

// newGateway takes reports of the pods, and routes them to an owner.
func newGateway(a *authn.Authenticator, directory pods, o gateway.RouterOptions) *gateway.Gateway {
	GinkgoHelper()
	router := gateway.NewRouter(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- router.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-done).To(Succeed())
	})
	return gateway.New(gateway.Options{Directory: directory, Sink: router.Route, Authenticator: a, Rate: 1000, Burst: 1000})
}

// serve runs a gRPC server, and returns its address.
func serve(server *grpc.Server) string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Stop)
	return listener.Addr().String()
}

// tokenFile writes a token as kubelet does.
func tokenFile(token string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "token")
	Expect(os.WriteFile(path, []byte(token), 0o600)).To(Succeed())
	return path
}

// post sends a report by HTTP, and returns the status and the answer.
func post(g *gateway.Gateway, token string) (int, string) {
	GinkgoHelper()
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	request, err := http.NewRequest(http.MethodPost, server.URL+gateway.Path, strings.NewReader(`{"cpu_utilization":0.5}`))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(body)
}

var _ = Describe("A pod that pushes", func() {
	It("is known by its token: CPU and requests in flight of a real server arrive", func(ctx SpecContext) {
		pod := newPod(ctx)
		store := newStore(pod)
		g := newGateway(newAuthenticator(time.Minute), pods{pod}, gateway.RouterOptions{Owners: owner(""), Store: store})
		server := httptest.NewServer(g.Handler())
		DeferCleanup(server.Close)

		reporter := orcareport.New(orcareport.Options{})
		release := make(chan struct{})
		application := httptest.NewServer(reporter.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })))
		DeferCleanup(application.Close)
		for range 3 {
			go func() {
				if response, err := http.Get(application.URL); err == nil {
					_ = response.Body.Close()
				}
			}()
		}
		DeferCleanup(func() { close(release) })
		pushing, cancel := context.WithCancel(ctx)
		done := make(chan error)
		go func() {
			done <- reporter.Push(pushing, server.URL, tokenFile(newToken(ctx, "checkout", pod, authn.DefaultAudience)))
		}()
		Eventually(func(g Gomega) {
			list := collect(store)
			g.Expect(list).To(HaveLen(1))
			g.Expect(list[0].Endpoint).To(Equal(string(pod.UID)))
			g.Expect(list[0].InFlight).To(BeNumerically("~", 3, 0.1))
			g.Expect(list[0].CPU).To(BeNumerically(">", 0))
		}).WithContext(ctx).WithTimeout(testTimeout).Should(Succeed())
		cancel()
		Expect(<-done).To(MatchError(context.Canceled))
	})

	It("reports for itself only, by HTTP and by gRPC", func(ctx SpecContext) {
		mine, other, stranger := newPod(ctx), newPod(ctx), newPod(ctx)
		store := newStore(mine, other)
		g := newGateway(newAuthenticator(time.Minute), pods{mine, other}, gateway.RouterOptions{Owners: owner(""), Store: store})
		code, text := post(g, newToken(ctx, "checkout", mine, authn.DefaultAudience))
		Expect(code).To(Equal(200), text)
		Expect(text).To(MatchJSON(`{"interval":"1s"}`))

		server := grpc.NewServer()
		g.Register(server)
		conn, err := grpc.NewClient(serve(server), grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		report, err := proto.Marshal(&orcav3.OrcaLoadReport{CpuUtilization: 0.7})
		Expect(err).NotTo(HaveOccurred())
		push := func(token string) error {
			_, err := balancerv1.NewLoadReportsClient(conn).Push(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), &balancerv1.PushRequest{Report: report})
			return err
		}
		Expect(push(newToken(ctx, "checkout", other, authn.DefaultAudience))).To(Succeed())
		cpu := map[string]float64{}
		for _, reading := range collect(store) {
			cpu[reading.Endpoint] = reading.CPU
		}
		Expect(cpu).To(Equal(map[string]float64{string(mine.UID): 0.5, string(other.UID): 0.7}))

		code, text = post(g, newToken(ctx, "checkout", stranger, authn.DefaultAudience))
		Expect(code).To(Equal(404))
		Expect(text).To(ContainSubstring("no WeightPolicy with the source Push balances the pod " + namespace + "/" + stranger.Name))
		Expect(status.Code(push(newToken(ctx, "checkout", stranger, authn.DefaultAudience)))).To(Equal(codes.NotFound))
	})

	DescribeTable("needs a token", func(ctx SpecContext, bound bool, audience, want string) {
		pod := newPod(ctx)
		g := newGateway(newAuthenticator(time.Minute), pods{pod}, gateway.RouterOptions{Owners: owner(""), Store: newStore(pod)})
		token := "made.by.me"
		if audience != "" {
			if !bound {
				pod = nil
			}
			token = newToken(ctx, "checkout", pod, audience)
		}
		code, text := post(g, token)
		Expect(code).To(Equal(401))
		Expect(text).To(ContainSubstring(want))
	},
		Entry("for the balancer", true, "https://vault", "the API server does not accept the token for audience"),
		Entry("of a pod", false, authn.DefaultAudience, "the token is bound to no pod"),
		Entry("that the API server made", true, "", "the API server does not accept the token for audience"),
	)

	It("is forgotten with the pod", func(ctx SpecContext) {
		pod := newPod(ctx)
		g := newGateway(newAuthenticator(time.Second), pods{pod}, gateway.RouterOptions{Owners: owner(""), Store: newStore(pod)})
		token := newToken(ctx, "checkout", pod, authn.DefaultAudience)
		code, text := post(g, token)
		Expect(code).To(Equal(200), text)
		zero := int64(0)
		Expect(admin.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})).To(Succeed())
		Eventually(func() int {
			code, _ := post(g, token)
			return code
		}).WithContext(ctx).WithTimeout(testTimeout).Should(Equal(401))
	})

	It("goes on while the API server is away, and nobody new passes", func(ctx SpecContext) {
		pod := newPod(ctx)
		g := newGateway(newAuthenticator(time.Millisecond), pods{pod}, gateway.RouterOptions{Owners: owner(""), Store: newStore(pod)})
		token, another := newToken(ctx, "checkout", pod, authn.DefaultAudience), newToken(ctx, "checkout", pod, authn.DefaultAudience)
		code, text := post(g, token)
		Expect(code).To(Equal(200), text)
		away.Store(true)
		defer away.Store(false)
		<-time.After(2 * time.Millisecond)
		code, text = post(g, token)
		Expect(code).To(Equal(200), text)
		code, text = post(g, another)
		Expect(code).To(Equal(503))
		Expect(text).To(MatchJSON(`{"error":"cannot authenticate now"}`))
	})
})

var _ = Describe("A replica", func() {
	It("carries reports to the owner with its own token, and a pod cannot", func(ctx SpecContext) {
		pod := newPod(ctx)
		store, a := newStore(pod), newAuthenticator(time.Minute)
		server := grpc.NewServer(grpc.ChainUnaryInterceptor(a.Unary), grpc.ChainStreamInterceptor(a.Stream))
		receiver := gateway.NewReceiver(gateway.ReceiverOptions{Users: []string{"system:serviceaccount:" + namespace + ":balancer"}, Store: store})
		balancerv1.RegisterReplicasServer(server, replicas{Receiver: receiver})
		address := serve(server)

		forwarder := gateway.NewForwarder(gateway.ForwarderOptions{TokenFile: tokenFile(newToken(ctx, "balancer", nil, authn.DefaultAudience))})
		DeferCleanup(forwarder.Close)
		g := newGateway(a, pods{pod}, gateway.RouterOptions{Owners: owner(address), Forwarder: forwarder})
		code, text := post(g, newToken(ctx, "checkout", pod, authn.DefaultAudience))
		Expect(code).To(Equal(200), text)
		Eventually(func() []loadreport.Reading { return collect(store) }).WithContext(ctx).WithTimeout(testTimeout).Should(HaveLen(1))

		liar := gateway.NewForwarder(gateway.ForwarderOptions{TokenFile: tokenFile(newToken(ctx, "checkout", pod, authn.DefaultAudience))})
		DeferCleanup(liar.Close)
		err := liar.Forward(ctx, address, []loadreport.Report{{Policy: policy, Endpoint: string(pod.UID)}})
		Expect(status.Code(err)).To(Equal(codes.PermissionDenied))
		Expect(err).To(MatchError(ContainSubstring("system:serviceaccount:" + namespace + ":checkout is no replica of this balancer")))
	})
})

type replicas struct {
	balancerv1.UnimplementedReplicasServer
	*gateway.Receiver
}

func (r replicas) Report(ctx context.Context, request *balancerv1.ReportRequest) (*balancerv1.ReportResponse, error) {
	return r.Receiver.Report(ctx, request)
}
