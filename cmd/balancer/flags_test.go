// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

const page = "../../docs/operations.md"

// TestFlagsInDocs: the table of flags in docs/operations.md is what the program has, in its words.
func TestFlagsInDocs(t *testing.T) {
	t.Setenv("POD_NAME", "")
	t.Setenv("POD_NAMESPACE", "")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n### Flags of the balancer\n")
	if !found {
		t.Fatalf("%s has no flags of the balancer", page)
	}
	if end := strings.Index(section, "\n## "); end >= 0 {
		section = section[:end]
	}
	var want []string
	new(flags).set().VisitAll(func(f *pflag.Flag) {
		value := strings.Trim(f.DefValue, "[]")
		if value == "false" {
			value = ""
		}
		if value != "" {
			value = "`" + value + "`"
		}
		want = append(want, strings.Join(strings.Fields(fmt.Sprintf("| `--%s` | %s | %s |", f.Name, value, f.Usage)), " "))
	})
	var got []string
	for _, row := range regexp.MustCompile(`(?m)^\| `+"`--"+`.*$`).FindAllString(section, -1) {
		got = append(got, strings.Join(strings.Fields(row), " "))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s has other flags (-program +page):\n%s", page, d)
	}
}

// TestParse: roles and what the environment says.
func TestParse(t *testing.T) {
	t.Setenv("POD_NAME", "balancer-7")
	t.Setenv("POD_IP", "2001:db8::1")
	f, err := parse([]string{"--roles=xds", "--listen=:19000"})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Roles) != 1 || f.Roles[0] != "xds" || f.Name != "balancer-7" || f.Advertise != "[2001:db8::1]:19000" {
		t.Errorf("read %+v", f.Options)
	}
	if _, err := parse([]string{"extra"}); err == nil || err.Error() != `unexpected argument "extra"` {
		t.Errorf("an argument: %v", err)
	}
}
