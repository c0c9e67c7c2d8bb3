// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	orcaservicev3 "github.com/cncf/xds/go/xds/service/orca/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/manager"
)

// cache is a backend of a ring that says by ORCA how busy it is: by its part of the keys, and its speed.
type cache struct {
	orcaservicev3.UnimplementedOpenRcaServiceServer
	name  string
	port  int32
	speed float64

	mu    sync.Mutex
	usage float64
}

func startCache(name string, speed float64) *cache {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	address, _ := listener.Addr().(*net.TCPAddr)
	c := &cache{name: name, port: int32(address.Port), speed: speed, usage: 0.5 / speed}
	server := grpc.NewServer()
	orcaservicev3.RegisterOpenRcaServiceServer(server, c)
	go func() { _ = server.Serve(listener) }() // It ends with the spec.
	DeferCleanup(server.Stop)
	return c
}

// StreamCoreMetrics sends a report as often as it is asked for.
func (c *cache) StreamCoreMetrics(request *orcaservicev3.OrcaLoadReportRequest, stream grpc.ServerStreamingServer[orcav3.OrcaLoadReport]) error {
	ticker := time.NewTicker(request.GetReportInterval().AsDuration())
	defer ticker.Stop()
	for {
		c.mu.Lock()
		report := &orcav3.OrcaLoadReport{CpuUtilization: c.usage}
		c.mu.Unlock()
		if err := stream.Send(report); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-ticker.C:
		}
	}
}

// startOperator starts what builds rings.
func startOperator() {
	GinkgoHelper()
	mgr, err := manager.New(controlPlane.Config(), manager.Options{
		Concurrency: 2, MetricsAddress: "0", ProbeAddress: "0", SkipNameValidation: true, ConsumerLoopback: true,
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() { cancel(); Eventually(done).Should(Receive(BeNil())) })
}

// ringOf makes a HashRing of caches, each of which has a weight.
func ringOf(ctx context.Context, algorithm v1alpha1.Algorithm, weight int32, caches ...*cache) *v1alpha1.HashRing {
	GinkgoHelper()
	ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(ctx), Name: "caches"}}
	ring.Spec.Algorithm = algorithm
	for _, c := range caches {
		ring.Spec.Backends = append(ring.Spec.Backends, v1alpha1.Backend{Name: c.name, Address: "127.0.0.1", Port: &c.port, Weight: &weight})
	}
	Expect(admin.Create(ctx, ring)).To(Succeed())
	return ring
}

var _ = Describe("a WeightPolicy of a HashRing", func() {
	It("gives its backends factors, which the ring follows, and says where their weights are too small", func(ctx SpecContext) {
		startOperator()
		startReplica("a")
		var caches []*cache
		for i, speed := range []float64{1, 1, 1.3, 1.3} {
			caches = append(caches, startCache(fmt.Sprintf("c%d", i), speed))
		}
		ring := ringOf(ctx, v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV2}, 100, caches...)
		policy := &v1alpha1.WeightPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ring.Namespace, Name: "load"}, Spec: v1alpha1.WeightPolicySpec{
			TargetRef: v1alpha1.WeightTarget{Kind: v1alpha1.TargetHashRing, Name: ring.Name},
			Load: v1alpha1.LoadMeasurement{Sources: []v1alpha1.LoadSource{
				{Type: v1alpha1.SourceORCA, Interval: &metav1.Duration{Duration: time.Second}},
			}},
		}}
		Expect(admin.Create(ctx, policy)).To(Succeed())
		current := &v1alpha1.HashRing{}
		Eventually(func() *v1alpha1.LoadWeights {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(ring), current)).To(Succeed())
			return current.Status.LoadWeights
		}).ShouldNot(BeNil())
		Eventually(condition(ctx, policy, v1alpha1.ConditionReady)).Should(Equal("True WeightsServed"))
		first := current.Status.Active.Digest
		Eventually(func() string {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(ring), current)).To(Succeed())
			return current.Status.Active.Digest
		}, time.Minute).ShouldNot(Equal(first), "the ring does not follow the factors")
		set := &v1alpha1.WeightSet{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: ring.Namespace, Name: "load-0"}, set)).To(Succeed())
		Expect(set.Labels).To(HaveKeyWithValue(v1alpha1.LabelWeightRing, ring.Name))
		weights := map[string]int32{}
		for _, e := range set.Endpoints {
			weights[fmt.Sprint(e.Port)] = e.Weight
		}
		Expect(weights[fmt.Sprint(caches[3].port)]).To(BeNumerically(">", weights[fmt.Sprint(caches[0].port)]))

		By("a ring whose weights are 1")
		coarse := ringOf(ctx, v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV2}, 1, caches...)
		another := policy.DeepCopy()
		another.ObjectMeta = metav1.ObjectMeta{Namespace: coarse.Namespace, Name: "load"}
		Expect(admin.Create(ctx, another)).To(Succeed())
		Eventually(condition(ctx, another, v1alpha1.ConditionEffective), time.Minute).Should(Equal("False CoarseWeights"))
	})
})
