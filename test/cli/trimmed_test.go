// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/internal/cli"
)

// trimmedManifest is a V3 ring of 30 backends.
func trimmedManifest(weightOfFirst int) string {
	text := strings.Builder{}
	text.WriteString(`apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: trimmed}
spec:
  algorithm: {version: V3, pointsPerWeight: 40}
  features: [{name: eu, selector: {matchLabels: {eu: "true"}}}]
  publication: {minInterval: 0s}
  backends:
`)
	for i := range 30 {
		weight := 1
		if i == 0 {
			weight = weightOfFirst
		}
		fmt.Fprintf(&text, "  - {name: c%d, address: 10.0.0.%d, port: 8080, weight: %d, labels: {eu: \"%v\"}}\n", i, i, weight, i%5 != 0)
	}
	return text.String()
}

var _ = Describe("A trimmed ring", func() {
	It("passes every check, although the ring before is not known", func(ctx SpecContext) {
		stop := startOperator()
		defer func() { stop() }()
		for _, weight := range []int{1, 3} {
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(trimmedManifest(weight)), &object.Object)).To(Succeed())
			object.SetNamespace(namespace)
			Expect(controlPlane.Apply(ctx, object)).To(Succeed())
			settled(ctx, namespace, "trimmed")
		}
		manifest := writeFile("trimmed.yaml", []byte(trimmedManifest(3)))
		out := succeed(ctx, "verify", "trimmed", "-f", manifest)
		Expect(out).NotTo(ContainSubstring("skip"))
		Expect(out).To(ContainSubstring("ok    " + manifest + ": gives the published snapshot\n"))

		var report cli.InspectReport
		Expect(json.Unmarshal([]byte(succeed(ctx, "inspect", "trimmed", "-o", "json")), &report)).To(Succeed())
		Expect(report.Revision).To(BeEquivalentTo(2))
		Expect(report.Snapshot.Algorithm).To(Equal(cli.AlgorithmReport{Version: "V3", PointsPerWeight: 40, WeightUnit: 1, MaxImbalance: 0.01}))
		Expect(report.Snapshot.Views).To(HaveLen(2))

		fresh := GinkgoT().TempDir()
		code, _, errOut := hashring(ctx, "build", "-f", manifest, "-n", namespace, "-o", fresh)
		Expect(code).To(Equal(cli.ExitOK), errOut)
		code, built, _ := hashring(ctx, "inspect", "--dir", fresh)
		Expect(code).To(Equal(cli.ExitOK))
		Expect(built).NotTo(ContainSubstring(report.Snapshot.Digest), "the ring before makes no difference: the test shows nothing")
	})
})
