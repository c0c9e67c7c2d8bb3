// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestCatalogFlags(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "system")
	f, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.CatalogNamespace != "system" || f.CatalogCopies != 7 || f.CatalogCopyInterval != 24*time.Hour {
		t.Errorf("the defaults are %q, %d, %v", f.CatalogNamespace, f.CatalogCopies, f.CatalogCopyInterval)
	}
	f, err = parse([]string{"--catalog-namespace", "other", "--catalog-copies", "100", "--catalog-copy-interval", "1m"})
	if err != nil || f.CatalogNamespace != "other" || f.CatalogCopies != 100 || f.CatalogCopyInterval != time.Minute {
		t.Errorf("got %q, %d, %v, %v", f.CatalogNamespace, f.CatalogCopies, f.CatalogCopyInterval, err)
	}
	for want, args := range map[string][]string{
		"--namespaces: it has no namespace":               {"--namespaces", ""},
		"--catalog-copies: 101 is not within 0 to 100":    {"--catalog-copies", "101"},
		"--catalog-copies: -1 is not within 0 to 100":     {"--catalog-copies", "-1"},
		"--catalog-copy-interval: 59s is less than 1m":    {"--catalog-copy-interval", "59s"},
		"invalid argument \"x\" for \"--catalog-copies\"": {"--catalog-copies", "x"},
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestTouchRate(t *testing.T) {
	f, err := parse(nil)
	if err != nil || f.TouchRate != 20 {
		t.Errorf("the default is %d, %v", f.TouchRate, err)
	}
	for _, value := range []int{1, 1000} {
		if f, err := parse([]string{"--touch-pods-qps", strconv.Itoa(value)}); err != nil || f.TouchRate != value {
			t.Errorf("%d: got %d, %v", value, f.TouchRate, err)
		}
	}
	for _, value := range []string{"0", "1001"} {
		want := "--touch-pods-qps: " + value + " is not within 1 to 1000"
		if _, err := parse([]string{"--touch-pods-qps", value}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestWithoutANamespace: on a developer's machine there is no catalog.
func TestWithoutANamespace(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	f, err := parse(nil)
	if err != nil || f.CatalogNamespace != "" {
		t.Errorf("got %q, %v", f.CatalogNamespace, err)
	}
}
