// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/cli"
	"github.com/ringwright/ringwright/pkg/ring"
)

const planned = `apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: planned}
spec:
  identity: Name
  publication: {minInterval: 0s}
  features:
  - {name: eu, selector: {matchLabels: {eu: "true"}}}
  backends:
  - {name: shard-0, address: 10.0.2.1, port: 11211, labels: {eu: "true"}}
  - {name: shard-1, address: 10.0.2.2, port: 11211, labels: {eu: "true"}}
  - {name: shard-2, address: 10.0.2.3, port: 11211}
`

var _ = Describe("A plan", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		stop := startOperator()
		DeferCleanup(stop)
		publish(ctx, planned)
	})

	// planOf plans a manifest against the cluster and returns the report; the exit code must be this one.
	planOf := func(ctx context.Context, code int, manifest string, args ...string) cli.PlanReport {
		GinkgoHelper()
		file := writeFile("planned.yaml", []byte(manifest))
		got, out, errOut := inCluster(ctx, append([]string{"plan", "-f", file, "-o", "json", "--pairs", "100"}, args...)...)
		Expect(got).To(Equal(code), out+errOut)
		Expect(errOut).To(BeEmpty())
		var report cli.PlanReport
		Expect(json.Unmarshal([]byte(out), &report)).To(Succeed())
		return report
	}

	It("of what is published moves nothing", func(ctx SpecContext) {
		report := planOf(ctx, cli.ExitOK, planned)
		Expect(report.Outcome).To(Equal(cli.PlanUnchanged))
		Expect(report.Ring).To(Equal(namespace + "/planned"))
		Expect(report.From).To(Equal("HashRing " + namespace + "/planned, revision 1"))
	})

	It("of another dial address moves nothing, and says so", func(ctx SpecContext) {
		report := planOf(ctx, cli.ExitOK, strings.Replace(planned, "10.0.2.2", "10.0.2.9", 1))
		Expect(report.Outcome).To(Equal(cli.PlanAddressesOnly))
		Expect(report.Addresses).To(Equal([]cli.AddressChange{{ID: "shard-1", Before: "10.0.2.2:11211", After: "10.0.2.9:11211"}}))
	})

	It("of a label that a feature selects moves keys of that view alone", func(ctx SpecContext) {
		report := planOf(ctx, cli.ExitMoves, strings.Replace(planned, "port: 11211}", `port: 11211, labels: {eu: "true"}}`, 1))
		Expect(report.MovedPositions).To(BeZero())
		Expect(report.Views).To(HaveLen(1))
		Expect(report.Views[0].Features).To(Equal([]string{"eu"}))
		Expect(report.Views[0].Moved).To(BeNumerically(">", 0.2))
	})

	It("is what the operator then does", func(ctx SpecContext) {
		changed := strings.Replace(planned, "10.0.2.3, port: 11211}", "10.0.2.3, port: 11211, weight: 3}", 1)
		before := publishedRing(ctx, "planned")
		report := planOf(ctx, cli.ExitMoves, changed)
		publish(ctx, changed)
		after := publishedRing(ctx, "planned")

		Expect(report.Outcome).To(Equal(cli.PlanMoves))
		Expect(report.Before.Snapshot.Digest).To(Equal(before.Digest()))
		Expect(report.After.Snapshot.Digest).To(Equal(after.Digest()))
		from, err := before.View()
		Expect(err).NotTo(HaveOccurred())
		to, err := after.View()
		Expect(err).NotTo(HaveOccurred())
		Expect(report.MovedPositions).To(Equal(ring.Compare(from, to).Total))
		Expect(report.MovedPositions).NotTo(BeZero())
		pairs := ring.ComparePairs(from, to)
		Expect(report.Pairs).To(HaveLen(len(pairs)))
		Expect(report.Pairs[0].From).To(Equal(pairs[0].From))
		Expect(report.Pairs[0].To).To(Equal("shard-2"))
		Expect(planOf(ctx, cli.ExitOK, changed).Outcome).To(Equal(cli.PlanUnchanged))
	})

	It("has the weights that a WeightPolicy gives the ring", func(ctx SpecContext) {
		weighed := strings.ReplaceAll(strings.Replace(planned, "name: planned", "name: weighed", 1), "port: 11211}", "port: 11211, weight: 100}")
		publish(ctx, weighed)
		set := &v1alpha1.WeightSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "load-0", Labels: map[string]string{v1alpha1.LabelWeightPolicy: "load", v1alpha1.LabelWeightRing: "weighed"}},
			Policy:     v1alpha1.PolicyIdentity{Name: "load", UID: "u", Ring: "weighed"}, Holder: "b", Version: 1, Sets: 1, UpdatedAt: metav1.Now(),
			Endpoints: []v1alpha1.WeightedEndpoint{{ID: "shard-2", Weight: 8000}},
		}
		Expect(admin.Create(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			got := &v1alpha1.HashRing{}
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "weighed"}, got)).To(Succeed())
			g.Expect(got.Status.LoadWeights).NotTo(BeNil())
			g.Expect(got.Status.LoadWeights.Applied).To(BeTrue())
			g.Expect(got.Status.Active.Revision).To(BeEquivalentTo(2))
		}).Should(Succeed())
		Expect(planOf(ctx, cli.ExitOK, weighed).Outcome).To(Equal(cli.PlanUnchanged))
		code, out, errOut := inCluster(ctx, "verify", "weighed", "-f", writeFile("weighed.yaml", []byte(weighed)))
		Expect(code).To(Equal(cli.ExitOK), out+errOut)
	})

	It("of a ring that is not there is one for the first", func(ctx SpecContext) {
		report := planOf(ctx, cli.ExitMoves, strings.Replace(planned, "name: planned", "name: other", 1))
		Expect(report.Outcome).To(Equal(cli.PlanFirst))
		Expect(report.From).To(Equal(fmt.Sprintf(
			"nothing: ConfigMap %[1]s/other-routing does not exist: no ring of the name other has been published in namespace %[1]s", namespace)))
		Expect(report.MovedPositions).To(BeEquivalentTo(ring.KeySpace))
	})

	It("takes the namespace of the manifest before that of the kubeconfig", func(ctx SpecContext) {
		object := strings.Replace(planned, "name: planned", "name: planned, namespace: elsewhere", 1)
		file := writeFile("elsewhere.yaml", []byte(object))
		code, out, errOut := hashring(ctx, "plan", "-f", file, "--kubeconfig", kubeconfig)
		Expect(code).To(Equal(cli.ExitMoves), errOut)
		Expect(out).To(HavePrefix("HashRing elsewhere/planned, compared with nothing: ConfigMap elsewhere/planned-routing does not exist"))
		code, _, errOut = inCluster(ctx, "plan", "-f", file)
		Expect(code).To(Equal(cli.ExitPlanFailed))
		Expect(errOut).To(ContainSubstring(`is "elsewhere", not "` + namespace + `" as asked for`))
	})

	It("needs no permission but that to read ConfigMaps", func(ctx SpecContext) {
		user, err := controlPlane.User("planner")
		Expect(err).NotTo(HaveOccurred())
		config := writeFile("kubeconfig", user.Kubeconfig)
		file := writeFile("planned.yaml", []byte(planned))
		code, _, errOut := hashring(ctx, "plan", "-f", file, "--kubeconfig", config, "-n", namespace)
		Expect(code).To(Equal(cli.ExitPlanFailed))
		Expect(errOut).To(ContainSubstring(`configmaps "planned-routing" is forbidden`))
		grantConfigMaps(ctx, "planner")
		Eventually(func() int {
			code, _, _ := hashring(ctx, "plan", "-f", file, "--kubeconfig", config, "-n", namespace)
			return code
		}).Should(Equal(cli.ExitMoves)) // The ring has changed since.
	})

	It("of a manifest that the operator would refuse is an error", func(ctx SpecContext) {
		file := writeFile("drained.yaml", []byte(strings.ReplaceAll(planned, "port: 11211", "port: 11211, weight: 0")))
		code, out, errOut := inCluster(ctx, "plan", "-f", file)
		Expect(code).To(Equal(cli.ExitPlanFailed), out)
		Expect(errOut).To(ContainSubstring("planned: spec.backends: none of 3 backends has a weight above 0"))
	})
})

// publish applies a manifest in the namespace and waits until its ring is published.
func publish(ctx context.Context, manifest string) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
	object.SetNamespace(namespace)
	Expect(controlPlane.Apply(ctx, object)).To(Succeed())
	settled(ctx, namespace, object.GetName())
}

// publishedRing opens what is in slot a.
func publishedRing(ctx context.Context, name string) *ring.Ring {
	GinkgoHelper()
	slot := &corev1.ConfigMap{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-a"}, slot)).To(Succeed())
	r, err := ring.Open(slot.BinaryData["ring-a.snap"])
	Expect(err).NotTo(HaveOccurred())
	return r
}
