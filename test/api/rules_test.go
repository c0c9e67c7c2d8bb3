// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// oldestEnvironment is the CEL environment in which Kubernetes 1.33 compiles the rules of a new CRD: that of the version
// before, so that it can be rolled back.
const oldestEnvironment = "1.32"

var _ = Describe("The rules of the schema", func() {
	DescribeTable("compile on the oldest Kubernetes that is supported", func(resource string, atLeast int) {
		document, err := os.ReadFile("../../config/crd/bases/ringwright.dev_" + resource + ".yaml")
		Expect(err).NotTo(HaveOccurred())
		definition := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.UnmarshalStrict(document, definition)).To(Succeed())
		props := &apiextensions.JSONSchemaProps{}
		Expect(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			definition.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil)).To(Succeed())
		structural, err := schema.NewStructural(props)
		Expect(err).NotTo(HaveOccurred())

		count := compileRules("", structural, environment.MustBaseEnvSet(version.MustParseGeneric(oldestEnvironment)))
		Expect(count).To(BeNumerically(">=", atLeast))
	},
		Entry("of HashRings", "hashrings", 10),
		Entry("of RingMigrations", "ringmigrations", 35),
		Entry("of RingMigrationActions", "ringmigrationactions", 2),
	)
})

// compileRules compiles the rules of a schema and of everything below it, and returns how many there are.
func compileRules(path string, structural *schema.Structural, environment *environment.EnvSet) (count int) {
	GinkgoHelper()
	if len(structural.XValidations) > 0 {
		root := path == ""
		results, err := cel.Compile(structural, model.SchemaDeclType(structural, root), celconfig.PerCallLimit,
			environment, cel.NewExpressionsEnvLoader())
		Expect(err).NotTo(HaveOccurred())
		for i, result := range results {
			Expect(result.Error).To(BeNil(), "%s: %s", path, structural.XValidations[i].Rule)
			Expect(result.MessageExpressionError).To(BeNil(), "%s: %s", path, structural.XValidations[i].MessageExpression)
		}
		count += len(results)
	}
	for name, property := range structural.Properties {
		count += compileRules(path+"."+name, &property, environment)
	}
	if structural.Items != nil {
		count += compileRules(path+"[]", structural.Items, environment)
	}
	return count
}
