// SPDX-License-Identifier: Apache-2.0

package routing_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestRingName: the names that Kubernetes takes, and nothing else, in what is read and in what is written.
func TestRingName(t *testing.T) {
	const namespace, name = "whose namespace is not 1 to 63", "whose name is not 1 to 253"
	for text, want := range map[string]string{
		"cdn/edge": "", "c/e": "", "0-1/a.b-c.2": "",
		strings.Repeat("n", 63) + "/" + strings.Repeat("r", 253): "",

		"": "not namespace/name", "edge": "not namespace/name", "/edge": "not namespace/name", "cdn/": "not namespace/name",
		strings.Repeat("n", 64) + "/edge": namespace, "cdn/" + strings.Repeat("r", 254): name,
		"Cdn/edge": namespace, "c.d/edge": namespace, "-c/edge": namespace, "c-/edge": namespace, "c\n/edge": namespace,
		"cdn/Edge": name, "cdn/.a": name, "cdn/a.": name, "cdn/a..b": name, "cdn/a-.b": name, "cdn/a/b": name, "cdn/a b": name, "cdn/ä": name,
		"cdn/edge\n": name, "cdn/edge\nserver { listen 9999; }\n#": name,
	} {
		t.Run(fmt.Sprintf("%.20q", text), func(t *testing.T) {
			f := file()
			f.Ring = text
			_, err := f.Encode()
			if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), "routing.json: ring is ") || !strings.Contains(err.Error(), want)) {
				t.Errorf("error %v, want one that says %q", err, want)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
