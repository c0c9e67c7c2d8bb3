// SPDX-License-Identifier: Apache-2.0

package crdschema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Rejection says why the API server would not take an object.
type Rejection struct {
	// Violations are all that is wrong, each with the path of the field, its value and what is allowed; sorted.
	Violations []string
	// Incomplete says that the CEL rules were not evaluated, because they rely on what is violated.
	Incomplete bool
}

// Error lists the violations in one line.
func (r *Rejection) Error() string { return strings.Join(r.Violations, "; ") }

func reject(violations []string, incomplete bool) error {
	if len(violations) == 0 {
		return nil
	}
	slices.Sort(violations)
	return &Rejection{Violations: slices.Compact(violations), Incomplete: incomplete}
}

// Admit turns obj into what would be stored if it were created with strict field validation: the defaults are filled in,
// the status is dropped. The error is a [Rejection], and obj then is in no particular state.
func (s *Schema) Admit(ctx context.Context, obj *unstructured.Unstructured) error {
	if err := s.checkType(obj); err != nil {
		return err
	}
	if err := s.dropUnknown(obj); err != nil {
		return err
	}
	defaulting.Default(obj.Object, s.structural)
	// A create cannot set the status, so whatever a manifest says there is not checked either.
	delete(obj.Object, "status")
	obj.SetGeneration(1)
	errs := s.validateSchema(ctx, obj)
	incomplete := slices.ContainsFunc(errs, blocksRules)
	if !incomplete {
		violated, _ := s.rules.Validate(ctx, nil, s.structural, obj.Object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, violated...)
	}
	return reject(messages(errs), incomplete)
}

func (s *Schema) checkType(obj *unstructured.Unstructured) error {
	if got := obj.GroupVersionKind(); got != s.kind {
		return &Rejection{Violations: []string{fmt.Sprintf("the object is a %s of %s, not a %s of %s",
			got.Kind, got.GroupVersion(), s.kind.Kind, s.kind.GroupVersion())}}
	}
	return nil
}

// dropUnknown reports unknown fields alone: what follows from a misspelt name, such as a missing required field, would
// only hide it. So does the API server.
func (s *Schema) dropUnknown(obj *unstructured.Unstructured) error {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(obj.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return &Rejection{Violations: []string{err.Error()}}
	}
	unknown = append(unknown, pruning.PruneWithOptions(obj.Object, s.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, s.structural)
	if found {
		if err := objectmeta.SetObjectMeta(obj.Object, meta); err != nil {
			return &Rejection{Violations: []string{err.Error()}}
		}
	}
	violations := make([]string, len(unknown))
	for i, path := range unknown {
		violations[i] = fmt.Sprintf("%s: unknown field", path)
	}
	return reject(violations, false)
}

// validateSchema runs the checks of a create that come before the CEL rules, in the API server's order.
func (s *Schema) validateSchema(ctx context.Context, obj *unstructured.Unstructured) field.ErrorList {
	errs := metavalidation.ValidateObjectMetaAccessor(obj, true, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, obj.Object, s.openAPI)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, obj.Object, s.structural, false)...)
	return append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj.Object)...)
}

// blocksRules says that rules cannot be evaluated on an object with this error: they rely on its types and bounds.
func blocksRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}

func messages(errs field.ErrorList) []string {
	list := make([]string, len(errs))
	for i, err := range errs {
		list[i] = err.Error()
	}
	return list
}
