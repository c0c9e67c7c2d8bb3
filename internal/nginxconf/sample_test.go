// SPDX-License-Identifier: Apache-2.0

package nginxconf_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/nginxconf"
	"github.com/ringwright/ringwright/pkg/ring"
)

// sample reads the first object of a sample.
func sample(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), into); err != nil {
		t.Fatal(err)
	}
}

// TestSampleStarts renders the ring of the sample, and has NGINX read it with the configuration that the sample mounts.
func TestSampleStarts(t *testing.T) {
	binary := findNGINX(t)
	var hashRing v1alpha1.HashRing
	sample(t, "hashring_upstream.yaml", &hashRing)
	c := configOf(ring.IdentityNGINX)
	for _, b := range hashRing.Spec.Backends {
		c.Backends = append(c.Backends, ring.Backend{ID: fmt.Sprintf("%s:%d", b.Address, *b.Port), Weight: uint32(*b.Weight)})
	}
	content, _, err := nginxconf.Config{Output: "f", Upstream: "ring", Hash: "$request_uri"}.Render(moment(t, build(t, c)))
	if err != nil {
		t.Fatal(err)
	}
	var mounted corev1.ConfigMap
	sample(t, "consumer_nginx.yaml", &mounted)
	work := shortTempDir(t)
	server := strings.NewReplacer("/etc/nginx/ring", work, "listen 8080", "listen unix:"+work+"/front").Replace(mounted.Data["default.conf"])
	if !strings.Contains(server, "include "+work+"/ring.conf;") {
		t.Fatalf("it does not include the ring:\n%s", server)
	}
	main, _, _ := strings.Cut(nginxMain(work), "include ")
	write(t, filepath.Join(work, "ring.conf"), string(content))
	write(t, filepath.Join(work, "nginx.conf"), main+server+"}\n")
	if output, err := exec.Command(binary, "-p", work, "-c", filepath.Join(work, "nginx.conf"), "-t", "-q").CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, output, content)
	}
}
