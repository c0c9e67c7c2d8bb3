// SPDX-License-Identifier: Apache-2.0

package apisource

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/ringwright/ringwright/pkg/routing"
)

type sum = [sha256.Size]byte

// file is what one ConfigMap holds for readers.
type file struct {
	sum sum
	// content is nil where the directory has it: a snapshot is in memory there already, and mapped by the reader.
	content []byte
	// routing is set where the file is routing.json.
	routing *routing.File
	// problem says why the ConfigMap cannot be used, "" where it can.
	problem string
}

// newFile takes the file out of a ConfigMap, which is nil where there is none.
func (s *Source) newFile(configMap, name string, cm *corev1.ConfigMap) file {
	if cm == nil {
		return file{problem: "does not exist"}
	}
	content, found := cm.BinaryData[name]
	if !found {
		var text string
		text, found = cm.Data[name]
		content = []byte(text)
	}
	if !found {
		return file{problem: "has no " + name}
	}
	if content == nil {
		content = []byte{} // Nil means that it is in the directory.
	}
	f := file{sum: sha256.Sum256(content), content: content}
	if configMap != s.routingConfigMap() {
		return f
	}
	parsed, err := routing.Parse(content)
	if err == nil && parsed.Ring != s.config.HashRing {
		err = fmt.Errorf("%s is of ring %s", routing.FileName, parsed.Ring)
	}
	if err != nil {
		return file{problem: err.Error()}
	}
	f.routing = &parsed
	return f
}

// references returns the snapshots that a routing.json names; none where there is no such file.
func references(f *routing.File) []routing.Reference {
	if f == nil {
		return nil
	}
	refs := []routing.Reference{f.Stable}
	if f.Candidate != nil {
		refs = append(refs, *f.Candidate)
	}
	return refs
}
