// SPDX-License-Identifier: Apache-2.0

package crdschema

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/config/crd"
)

// Schema is one version of a CustomResourceDefinition, compiled. It may be used concurrently.
type Schema struct {
	kind       schema.GroupVersionKind
	structural *structuralschema.Structural
	openAPI    validation.SchemaValidator
	// rules is nil where the schema has no CEL rule; its methods accept that.
	rules *cel.Validator
}

// HashRing returns the schema of HashRings. It is compiled once, which takes some milliseconds.
var HashRing = embedded("hashrings")

// RingMigration returns the schema of RingMigrations, as HashRing does.
var RingMigration = embedded("ringmigrations")

// RingMigrationAction returns the schema of RingMigrationActions, as HashRing does.
var RingMigrationAction = embedded("ringmigrationactions")

// embedded compiles the CRD of a resource when it is asked for.
func embedded(resource string) func() (*Schema, error) {
	return sync.OnceValues(func() (*Schema, error) {
		text, err := crd.Bases.ReadFile("bases/ringwright.dev_" + resource + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("reading the embedded CRD: %w", err)
		}
		return compile(text, "v1alpha1")
	})
}

// compile prepares one version of a CRD as the API server does when the CRD is installed.
func compile(text []byte, version string) (*Schema, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, definition); err != nil {
		return nil, fmt.Errorf("reading the CRD: %w", err)
	}
	props, err := versionSchema(definition, version)
	if err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, fmt.Errorf("making the schema of %s structural: %w", definition.Name, err)
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, fmt.Errorf("pruning the defaults of %s: %w", definition.Name, err)
	}
	openAPI, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema of %s: %w", definition.Name, err)
	}
	return &Schema{
		kind:       schema.GroupVersionKind{Group: definition.Spec.Group, Version: version, Kind: definition.Spec.Names.Kind},
		structural: structural,
		openAPI:    openAPI,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

func versionSchema(definition *apiextensionsv1.CustomResourceDefinition, version string) (*apiextensions.JSONSchemaProps, error) {
	for _, v := range definition.Spec.Versions {
		if v.Name != version || v.Schema == nil {
			continue
		}
		internal := &apiextensions.CustomResourceValidation{}
		if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema, internal, nil); err != nil {
			return nil, fmt.Errorf("converting the schema of %s: %w", definition.Name, err)
		}
		return internal.OpenAPIV3Schema, nil
	}
	return nil, fmt.Errorf("%s has no schema for version %s", definition.Name, version)
}
