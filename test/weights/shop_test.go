// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// shop is a Service with servers of several speeds, which exist as objects: what they would be used is computed from the weights that a
// client gets, and reported by each pod with its own token.
type shop struct {
	namespace, name string
	servers         []*server
	// gateways are the addresses that reports go to, one after the other.
	gateways []*replica
	client   *edsClient
	mu       sync.Mutex
	// equal has clients ignore the weights.
	equal  atomic.Bool
	silent atomic.Bool
	turn   atomic.Int64
}

// server is one of them.
type server struct {
	pod   *corev1.Pod
	token string
	port  int32
	// speed is how much of the mean load makes it busy to 50 %.
	speed float64
	mute  atomic.Bool
}

// newShop makes a Service with a server of each speed.
func newShop(ctx context.Context, name string, speeds ...float64) *shop {
	GinkgoHelper()
	s := &shop{namespace: newNamespace(ctx), name: name}
	Expect(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "default"}})).To(Succeed())
	Expect(admin.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Name: "grpc", Port: 80, Protocol: corev1.ProtocolTCP}},
		},
	})).To(Succeed())
	for _, speed := range speeds {
		s.add(ctx, speed)
	}
	return s
}

// add makes one more server.
func (s *shop) add(ctx context.Context, speed float64) *server {
	GinkgoHelper()
	n := len(s.servers)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("%s-%d", s.name, n), Labels: map[string]string{"app": s.name}},
		Spec:       corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "server", Image: "server"}}},
	}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	added := &server{pod: pod, token: tokenOf(ctx, s.namespace, "default", pod), port: int32(20000 + n), speed: speed}
	Expect(admin.Create(ctx, s.slice(added, nil))).To(Succeed())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = append(s.servers, added)
	return added
}

// slice is the EndpointSlice of a server.
func (s *shop) slice(server *server, ready *bool) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: server.pod.Name, Labels: map[string]string{discoveryv1.LabelServiceName: s.name},
		},
		AddressType: discoveryv1.AddressTypeFQDN,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("grpc"), Port: ptr.To(server.port), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"server.localhost"}, Conditions: discoveryv1.EndpointConditions{Ready: ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: server.pod.Name, UID: server.pod.UID},
		}},
	}
}

// policy is a WeightPolicy of the shop, of a few lines.
func (s *shop) policy() *v1alpha1.WeightPolicy {
	return &v1alpha1.WeightPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name},
		Spec:       v1alpha1.WeightPolicySpec{TargetRef: v1alpha1.WeightTarget{Name: s.name}},
	}
}

// open has clients come and pods report by the given replicas, until the end of the spec.
func (s *shop) open(replicas ...*replica) {
	GinkgoHelper()
	s.gateways = replicas
	addresses := make([]string, len(replicas))
	for i, r := range replicas {
		addresses[i] = r.listen
	}
	s.client = newEDSClient(s.namespace+"/"+s.name, addresses...)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(600 * time.Millisecond) // The gateway takes two reports a second of each pod.
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				s.report(ctx)
			}
		}
	})
	DeferCleanup(func() { cancel(); done.Wait(); s.client.close() })
}

// usage is the utilisation of each server with the weights that clients have: 0.5 for all with perfect ones.
func (s *shop) usage() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	weights := s.client.weights()
	var sum, speeds float64
	for _, server := range s.servers {
		sum += s.weight(weights, server)
		speeds += server.speed
	}
	usage := make([]float64, len(s.servers))
	for i, server := range s.servers {
		if sum > 0 {
			usage[i] = 0.5 * speeds * s.weight(weights, server) / sum / server.speed
		}
	}
	return usage
}

func (s *shop) weight(weights map[int32]uint32, server *server) float64 {
	if s.equal.Load() {
		return 1
	}
	return float64(weights[server.port])
}

// maxOverAverage is that of the servers.
func (s *shop) maxOverAverage() float64 {
	sum, largest := 0.0, 0.0
	usage := s.usage()
	for _, u := range usage {
		sum, largest = sum+u, max(largest, u)
	}
	return largest / (sum / float64(len(usage)))
}

// report has every pod push its load.
func (s *shop) report(ctx context.Context) {
	if s.silent.Load() {
		return
	}
	usage := s.usage()
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()
	var pushes sync.WaitGroup
	for i, server := range servers {
		if i < len(usage) && !server.mute.Load() {
			pushes.Go(func() { s.push(ctx, server, usage[i]) })
		}
	}
	pushes.Wait()
}

// push sends one report, to another replica each time.
func (s *shop) push(ctx context.Context, server *server, cpu float64) {
	body, err := proto.Marshal(&orcav3.OrcaLoadReport{CpuUtilization: cpu, RpsFractional: 2000 * cpu})
	if err != nil {
		panic(err)
	}
	gateway := s.gateways[int(s.turn.Add(1))%len(s.gateways)]
	status, _ := pushTo(ctx, gateway, server.token, "application/x-protobuf", body)
	_ = status // A replica that was killed takes none.
}

// pushTo posts a report, and returns the status and the body of the answer.
func pushTo(ctx context.Context, to *replica, token, contentType string, body []byte) (int, string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to.http+"/v1/load", bytes.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("Content-Type", contentType)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	var text bytes.Buffer
	_, _ = text.ReadFrom(response.Body)
	return response.StatusCode, text.String()
}
