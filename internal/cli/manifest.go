// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/crdschema"
)

// maxManifestBytes is far more than an API server takes, for files with many documents.
const maxManifestBytes = 16 << 20

const hashRingKind = "HashRing"

// manifestRef says which HashRing of a file is meant.
type manifestRef struct {
	// file is a path, or "-" for the standard input.
	file string
	// name chooses among several; "" where there is one.
	name string
	// namespace is that of a HashRing whose manifest has none. One that has another is refused; "" takes any.
	namespace string
	// fallback is the namespace where neither says; "" is "default".
	fallback string
}

// load reads the HashRing and does to it what the API server does at its creation. One whose backends are not all in it is
// refused.
func (m manifestRef) load(ctx context.Context, in io.Reader) (*v1alpha1.HashRing, error) {
	data, err := readManifest(m.file, in)
	if err != nil {
		return nil, err
	}
	objects, err := parseManifest(m.file, data)
	if err != nil {
		return nil, err
	}
	obj, err := m.choose(objects)
	if err != nil {
		return nil, err
	}
	hashRing, err := m.admit(ctx, obj)
	if err != nil {
		return nil, err
	}
	return hashRing, checkBackendsKnown(hashRing)
}

func readManifest(file string, in io.Reader) ([]byte, error) {
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
		defer func() { _ = opened.Close() }() // Nothing was written, so there is nothing that closing could lose.
		in = opened
	}
	data, err := io.ReadAll(io.LimitReader(in, maxManifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	if len(data) > maxManifestBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxManifestBytes)
	}
	return data, nil
}

// parseManifest returns the objects of all documents, those of lists one by one.
func parseManifest(file string, data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, number, err)
		}
		found, err := parseDocument(document)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, number, err)
		}
		objects = append(objects, found...)
	}
}

// parseDocument refuses a field that occurs twice, as an API server does with strict validation.
func parseDocument(document []byte) ([]*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	if string(text) == "null" {
		return nil, nil // Only comments, or nothing at all.
	}
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &obj.Object); err != nil {
		return nil, errors.New("it is not an object")
	}
	if obj.GetKind() == "" {
		return nil, errors.New("kind is missing")
	}
	if !obj.IsList() {
		return []*unstructured.Unstructured{obj}, nil
	}
	list, err := obj.ToList()
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
	}
	return objects, nil
}

// choose returns the one HashRing that is meant.
func (m manifestRef) choose(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var rings []*unstructured.Unstructured
	var names, others []string
	for _, obj := range objects {
		if obj.GroupVersionKind().Group != v1alpha1.GroupName || obj.GetKind() != hashRingKind {
			others = append(others, obj.GetKind())
			continue
		}
		names = append(names, obj.GetName())
		if m.name == "" || obj.GetName() == m.name {
			rings = append(rings, obj)
		}
	}
	switch {
	case len(names) == 0 && len(others) == 0:
		return nil, fmt.Errorf("%s is empty: a manifest of a HashRing is needed", m.file)
	case len(names) == 0:
		slices.Sort(others)
		return nil, fmt.Errorf("%s has no HashRing, only %s", m.file, strings.Join(slices.Compact(others), ", "))
	case len(rings) == 0:
		return nil, fmt.Errorf("%s has no HashRing of the name %q, only %s", m.file, m.name, strings.Join(names, ", "))
	case len(rings) > 1 && m.name == "":
		return nil, fmt.Errorf("%s has %d HashRings: choose one by --name: %s", m.file, len(rings), strings.Join(names, ", "))
	case len(rings) > 1:
		return nil, fmt.Errorf("%s has %d HashRings of the name %q", m.file, len(rings), m.name)
	}
	return rings[0], nil
}

func (m manifestRef) admit(ctx context.Context, obj *unstructured.Unstructured) (*v1alpha1.HashRing, error) {
	switch given := obj.GetNamespace(); {
	case given == "" && m.namespace == "":
		obj.SetNamespace(cmp.Or(m.fallback, "default"))
	case given == "":
		obj.SetNamespace(m.namespace)
	case m.namespace != "" && given != m.namespace:
		return nil, fmt.Errorf("metadata.namespace of HashRing %s is %q, not %q as asked for", obj.GetName(), given, m.namespace)
	}
	schema, err := crdschema.HashRing()
	if err != nil {
		return nil, err
	}
	if err := schema.Admit(ctx, obj); err != nil {
		var rejection *crdschema.Rejection
		if errors.As(err, &rejection) {
			return nil, &manifestError{ring: obj.GetNamespace() + "/" + obj.GetName(), rejection: rejection}
		}
		return nil, err
	}
	ring := &v1alpha1.HashRing{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, ring); err != nil {
		return nil, fmt.Errorf("reading HashRing %s: %w", obj.GetName(), err)
	}
	return ring, nil
}
