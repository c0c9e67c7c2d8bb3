// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// MaxNamespaceBytes is how long the namespace of a HashRing can be, as Kubernetes has it.
	MaxNamespaceBytes = 63
	// MaxNameBytes is how long the name of a HashRing can be, as Kubernetes has it.
	MaxNameBytes = 253
)

const label = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`

var (
	namespaceForm = regexp.MustCompile(`^` + label + `$`)
	nameForm      = regexp.MustCompile(`^` + label + `(\.` + label + `)*$`)
)

// CheckRingName says why a text is not the namespace and name of a HashRing, "cdn/edge-cache", as Kubernetes takes them. Readers put
// it into logs, metrics and the configuration of other programs, where anything else could mean something.
func CheckRingName(text string) error {
	namespace, name, found := strings.Cut(text, "/")
	switch {
	case !found || namespace == "" || name == "":
		return fmt.Errorf("%.80q, not namespace/name", text)
	case len(namespace) > MaxNamespaceBytes || !namespaceForm.MatchString(namespace):
		return fmt.Errorf("%.80q, whose namespace is not 1 to %d lower-case letters, digits and inner hyphens", text, MaxNamespaceBytes)
	case len(name) > MaxNameBytes || !nameForm.MatchString(name):
		return fmt.Errorf("%.80q, whose name is not 1 to %d lower-case letters, digits, inner hyphens and single inner dots", text, MaxNameBytes)
	}
	return nil
}
