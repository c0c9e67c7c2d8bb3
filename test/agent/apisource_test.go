// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/apisource"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// ringName is the one that the samples are about.
const ringName = "minimal"

// site is a namespace with a HashRing, and what an agent there has.
type site struct {
	namespace string
	ring      *v1alpha1.HashRing
	// api is where the agent reaches the API server.
	api    *forwarder
	config *rest.Config
	// kubeconfig is of the same user, who reaches the API server directly.
	kubeconfig []byte
	dir        string
	source     *apisource.Source
	stop       func()
}

// newSite publishes a ring, and grants the service account of the sample what the sample grants.
func newSite(ctx context.Context) *site {
	GinkgoHelper()
	namespace, err := controlPlane.CreateNamespace(ctx, "agent-")
	Expect(err).NotTo(HaveOccurred())
	account := ""
	for _, object := range sample("agent_api_source.yaml") {
		object.SetNamespace(namespace)
		if object.GetKind() == "RoleBinding" { // Its subject is in the namespace that it is applied to.
			subjects := object.Object["subjects"].([]any)
			subject := subjects[0].(map[string]any)
			subject["namespace"] = namespace
			account = subject["name"].(string)
		}
		Expect(controlPlane.Apply(ctx, object)).To(Succeed())
	}
	user, err := controlPlane.ServiceAccount(namespace, account)
	Expect(err).NotTo(HaveOccurred())
	s := &site{namespace: namespace, config: user.Config, kubeconfig: user.Kubeconfig, dir: filepath.Join(GinkgoT().TempDir(), "ring")}
	host, err := url.Parse(user.Config.Host)
	Expect(err).NotTo(HaveOccurred())
	s.api = newForwarder(host.Host)
	s.config.Host = "https://" + s.api.address
	s.ring = &v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ringName},
		Spec: v1alpha1.HashRingSpec{
			Backends: backends(3), Publication: v1alpha1.Publication{MinInterval: &metav1.Duration{}},
			Membership: v1alpha1.Membership{MaxRemoved: "100%"}, ChangePolicy: v1alpha1.ChangeImmediate,
		},
	}
	Expect(admin.Create(ctx, s.ring)).To(Succeed())
	return s
}

func backends(n int) []v1alpha1.Backend {
	list := make([]v1alpha1.Backend, n)
	for i := range list {
		list[i] = v1alpha1.Backend{Name: fmt.Sprintf("c%d", i), Address: fmt.Sprintf("10.1.%d.%d", i/256, i%256), Port: ptr.To(int32(8080))}
	}
	return list
}

// start runs a source into the directory of the site until stop is called or the test ends.
func (s *site) start() {
	GinkgoHelper()
	var err error
	s.source, err = apisource.NewFor(apisource.Config{HashRing: s.namespace + "/" + ringName, Dir: s.dir}, s.config)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.source.Run(ctx) }()
	s.stop = func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
		done <- nil
	}
	DeferCleanup(s.stop)
}

// open returns a reader of the directory.
func (s *site) open() *ringclient.Client {
	GinkgoHelper()
	c, err := ringclient.Open(s.dir, ringclient.Options{WaitForRing: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(c.Close)
	return c
}

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

// size returns how many backends the ring of a reader has; 0 for no ring.
func size(c *ringclient.Client) func() int {
	return func() int {
		if state := c.State(); state != nil {
			return state.Ring().Len()
		}
		return 0
	}
}

// resize changes the number of backends.
func (s *site) resize(ctx context.Context, n int) {
	GinkgoHelper()
	s.edit(ctx, func(spec *v1alpha1.HashRingSpec) { spec.Backends = backends(n) })
}

func (s *site) edit(ctx context.Context, change func(*v1alpha1.HashRingSpec)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := admin.Get(ctx, keyOf(s.ring), s.ring); err != nil {
			return err
		}
		change(&s.ring.Spec)
		return admin.Update(ctx, s.ring)
	}).Should(Succeed())
}

func (s *site) configMap(part string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: ringName + "-" + part}}
}

// orphan deletes the HashRing, waits until what it published is a tombstone, and returns the snapshot.
func (s *site) orphan(ctx context.Context) []byte {
	GinkgoHelper()
	Expect(admin.Delete(ctx, s.ring)).To(Succeed())
	slot, head := s.configMap("a"), s.configMap("routing")
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, keyOf(head), head)).To(Succeed())
		g.Expect(head.Annotations).To(HaveKey(v1alpha1.AnnotationTombstoneUntil))
	}).Should(Succeed())
	Expect(admin.Get(ctx, keyOf(slot), slot)).To(Succeed())
	return slot.BinaryData["ring-a.snap"]
}

// metric returns the sum of a metric of the source over its labels.
func (s *site) metric(name string) float64 {
	GinkgoHelper()
	registry := prometheus.NewPedanticRegistry()
	Expect(registry.Register(s.source)).To(Succeed())
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	if at < 0 {
		return 0
	}
	total := 0.0
	for _, m := range families[at].GetMetric() {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return total
}

var _ = Describe("an agent with --source=api and the Role of the sample", func() {
	It("applies what is published within a second", func(ctx SpecContext) {
		s := newSite(ctx)
		s.start()
		reader := s.open()
		Eventually(size(reader)).Should(Equal(3))
		// The operator's own work is not part of the figure: it counts from when the ConfigMap was written.
		written := make(chan time.Time, 100)
		events, err := admin.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(s.namespace), client.MatchingFields{"metadata.name": ringName + "-routing"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(events.Stop)
		go func() {
			for range events.ResultChan() {
				written <- time.Now()
			}
		}()
		Eventually(written).Should(Receive())
		var latencies []time.Duration
		for n := 4; n < 24; n++ {
			s.resize(ctx, n)
			var at time.Time
			Eventually(written).Should(Receive(&at))
			Eventually(size(reader)).WithPolling(time.Millisecond).Should(Equal(n))
			latencies = append(latencies, reader.State().LoadedAt().Sub(at))
		}
		slices.Sort(latencies)
		AddReportEntry("published to applied", fmt.Sprintf("median %v, worst of %d %v", latencies[len(latencies)/2], len(latencies), latencies[len(latencies)-1]))
		GinkgoWriter.Printf("published to applied: median %v, worst of %d %v\n", latencies[len(latencies)/2], len(latencies), latencies[len(latencies)-1])
		Expect(latencies[len(latencies)/2]).To(BeNumerically("<", time.Second))
		Expect(s.source.Warnings()).To(BeEmpty())
		Expect(s.metric("ringwright_agent_source_watch_errors_total")).To(BeZero())
		Expect(s.metric("ringwright_agent_source_last_event_age_seconds")).To(BeNumerically(">", 0))
	})

	It("may read nothing else", func(ctx SpecContext) {
		s := newSite(ctx)
		user, err := client.New(s.config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(user.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(s.namespace))).To(MatchError(ContainSubstring("forbidden")))
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "other"}}
		Expect(admin.Create(ctx, other)).To(Succeed())
		Expect(user.Get(ctx, keyOf(other), other)).To(MatchError(ContainSubstring("forbidden")))
	})

	It("keeps what it has while a ConfigMap is missing or of another moment", func(ctx SpecContext) {
		s := newSite(ctx)
		s.start()
		reader := s.open()
		Eventually(size(reader)).Should(Equal(3))
		// Without its HashRing nobody restores what is edited here: the files of a deleted ring stay.
		good := s.orphan(ctx)
		before, err := os.Readlink(filepath.Join(s.dir, "..data"))
		Expect(err).NotTo(HaveOccurred())

		By("a snapshot that routing.json does not name")
		slot := s.configMap("a")
		Expect(admin.Get(ctx, keyOf(slot), slot)).To(Succeed())
		slot.BinaryData["ring-a.snap"] = append(slices.Clone(good), 0)
		Expect(admin.Update(ctx, slot)).To(Succeed())
		Eventually(s.source.Warnings).Should(ContainElement(ContainSubstring("different moments")))
		Expect(os.Readlink(filepath.Join(s.dir, "..data"))).To(Equal(before))

		By("no snapshot at all")
		Expect(admin.Delete(ctx, slot)).To(Succeed())
		Eventually(s.source.Warnings).Should(ContainElement(ContainSubstring(ringName + "-a: does not exist")))
		Expect(os.Readlink(filepath.Join(s.dir, "..data"))).To(Equal(before))
		Expect(reader.State().Ring().Len()).To(Equal(3))

		By("the snapshot again")
		slot = s.configMap("a")
		slot.BinaryData = map[string][]byte{"ring-a.snap": good}
		Expect(admin.Create(ctx, slot)).To(Succeed())
		Eventually(s.source.Warnings).Should(BeEmpty())

		By("a directory that somebody else wrote to, and a change of routing.json alone")
		Expect(os.WriteFile(filepath.Join(s.dir, "..data", "ring-a.snap"), []byte("theirs"), 0o600)).To(Succeed())
		head := s.configMap("routing")
		Expect(admin.Get(ctx, keyOf(head), head)).To(Succeed())
		file, err := routing.Parse([]byte(head.Data[routing.FileName]))
		Expect(err).NotTo(HaveOccurred())
		file.Generation++
		text, err := file.Encode()
		Expect(err).NotTo(HaveOccurred())
		head.Data[routing.FileName] = string(text)
		Expect(admin.Update(ctx, head)).To(Succeed())
		Eventually(func() int64 { return reader.State().Generation() }).Should(Equal(file.Generation))
		Expect(os.ReadFile(filepath.Join(s.dir, "ring-a.snap"))).To(Equal(good))
		before, err = os.Readlink(filepath.Join(s.dir, "..data"))
		Expect(err).NotTo(HaveOccurred())

		By("a routing.json that is none")
		head.Data[routing.FileName] = "{}"
		Expect(admin.Update(ctx, head)).To(Succeed())
		Eventually(s.source.Warnings).Should(ContainElement(ContainSubstring("apiVersion")))
		Expect(os.Readlink(filepath.Join(s.dir, "..data"))).To(Equal(before))
		Expect(reader.State().Ring().Len()).To(Equal(3))
	})

	It("survives an API server that goes away, and a restart meanwhile", func(ctx SpecContext) {
		s := newSite(ctx)
		s.start()
		reader := s.open()
		Eventually(size(reader)).Should(Equal(3))
		s.api.down()
		s.resize(ctx, 5)
		Eventually(s.source.Warnings).Should(ContainElement(ContainSubstring("cannot be watched since")))
		Expect(s.metric("ringwright_agent_source_watch_errors_total")).To(BeNumerically(">", 0))
		Expect(reader.State().Ring().Len()).To(Equal(3))

		s.stop()
		s.start()
		Eventually(s.source.Warnings).Should(ContainElement(ContainSubstring("cannot be watched since")))
		Expect(size(s.open())()).To(Equal(3), "a reader that starts now has what the directory holds")

		s.api.up()
		Eventually(size(reader)).WithTimeout(time.Minute).Should(Equal(5))
		Eventually(s.source.Warnings).WithTimeout(time.Minute).Should(BeEmpty())
	})

	It("begins again where the API server has forgotten what it saw last", func(ctx SpecContext) {
		s := newSite(ctx)
		var expired atomic.Int32
		s.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				query := r.URL.Query()
				if query.Get("watch") == "" || query.Get("sendInitialEvents") != "" || query.Get("resourceVersion") == "" {
					return next.RoundTrip(r)
				}
				// An API server says it in one of two ways.
				if expired.Add(1)%2 == 0 {
					return answer(r, http.StatusGone, expiredStatus), nil
				}
				return answer(r, http.StatusOK, `{"type":"ERROR","object":`+expiredStatus+"}\n"), nil
			})
		})
		s.start()
		reader := s.open()
		Eventually(size(reader)).Should(Equal(3))
		for n := 4; n <= 7; n++ {
			s.api.cut()
			s.resize(ctx, n)
			Eventually(size(reader)).Should(Equal(n))
		}
		Expect(expired.Load()).To(BeNumerically(">=", 2))
		Expect(s.metric("ringwright_agent_source_watch_errors_total")).To(BeNumerically(">=", 2))
	})

	It("follows a ring into chunks and back, once the Role names them", func(ctx SpecContext) {
		s := newSite(ctx)
		s.start()
		reader := s.open()
		Eventually(size(reader)).Should(Equal(3))
		s.edit(ctx, func(spec *v1alpha1.HashRingSpec) {
			spec.Publication.Chunks, spec.Publication.Encoding = 3, v1alpha1.EncodingPoints
			spec.Backends = backends(1100)
			for i := range spec.Backends {
				spec.Backends[i].Weight = ptr.To(int32(4))
			}
		})
		Eventually(s.source.Warnings).Should(ContainElement(And(ContainSubstring(ringName+"-a-1"), ContainSubstring("config/samples/agent_api_source.yaml"))))
		Expect(reader.State().Ring().Len()).To(Equal(3))

		role := &rbacv1.Role{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: ringName + "-reader"}, role)).To(Succeed())
		role.Rules[0].ResourceNames = append(role.Rules[0].ResourceNames, ringName+"-a-1", ringName+"-a-2")
		Expect(admin.Update(ctx, role)).To(Succeed())
		Eventually(size(reader)).WithTimeout(time.Minute).Should(Equal(1100))
		Expect(filepath.Glob(filepath.Join(s.dir, "ring-a.snap*"))).To(HaveLen(3))
		Eventually(s.source.Warnings).Should(BeEmpty())

		s.resize(ctx, 4)
		Eventually(size(reader)).Should(Equal(4))
		Eventually(func() ([]string, error) { return filepath.Glob(filepath.Join(s.dir, "ring-a.snap*")) }).Should(HaveLen(1))
		Expect(s.source.Warnings()).To(BeEmpty())
	})
})

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const expiredStatus = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`

func answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}
