// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string
		err  string
	}{
		"all":           {},
		"several":       {args: []string{"--namespaces=a,b", "--namespaces=c"}, want: []string{"a", "b", "c"}},
		"the most":      {args: []string{"--namespaces=" + strings.Repeat("a", 63)}, want: []string{strings.Repeat("a", 63)}},
		"too long":      {args: []string{"--namespaces=" + strings.Repeat("a", 64)}, err: "must be no more than 63"},
		"an empty list": {args: []string{"--namespaces="}, err: "--namespaces: it has no namespace"},
		"an empty name": {args: []string{"--namespaces=a,"}, err: `--namespaces: "" is no name of a namespace: `},
		"a wildcard":    {args: []string{"--namespaces=*"}, err: `--namespaces: "*" is no name of a namespace: `},
		"twice":         {args: []string{"--namespaces=a,b,a"}, err: `--namespaces: "a" is there twice`},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			AddNamespaces(set, &got)
			if err := set.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			err := CheckNamespaces(set, got)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want %s", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v, %s", err, diff)
			}
		})
	}
}
