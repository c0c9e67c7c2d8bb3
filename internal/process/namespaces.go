// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

const namespacesFlag = "namespaces"

// AddNamespaces defines --namespaces.
func AddNamespaces(set *pflag.FlagSet, to *[]string) {
	set.StringSliceVar(to, namespacesFlag, nil, "namespaces to work in, separated by commas, for which Roles are enough; without it, all of the cluster")
}

// CheckNamespaces returns an error for what is no name of a namespace, and for an empty list where the flag is given: an empty variable in
// a manifest must not let the program loose on the whole cluster.
func CheckNamespaces(set *pflag.FlagSet, namespaces []string) error {
	if set.Changed(namespacesFlag) && len(namespaces) == 0 {
		return errors.New("--namespaces: it has no namespace; leave it out to work in all of them")
	}
	seen := make(map[string]bool, len(namespaces))
	for _, namespace := range namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("--namespaces: %q is no name of a namespace: %s", namespace, strings.Join(problems, "; "))
		}
		if seen[namespace] {
			return fmt.Errorf("--namespaces: %q is there twice", namespace)
		}
		seen[namespace] = true
	}
	return nil
}
