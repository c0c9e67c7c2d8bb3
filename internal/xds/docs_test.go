// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"os"
	"regexp"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3" // The page has one.
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	xdsclient "google.golang.org/grpc/xds"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/testenv/golden"
)

const (
	page = "../../docs/weights-xds.md"
	// clientsPage has a table that -update writes.
	clientsPage = "../../docs/weights-clients.md"
)

// block returns the first block of code in a language.
func block(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```"+language+"\n")
	code, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatalf("%s has no block of %s", page, language)
	}
	return code
}

// TestDocumentedEnvoy holds the configuration against Envoy's definitions and constraints, and against what is served.
func TestDocumentedEnvoy(t *testing.T) {
	text, err := yaml.YAMLToJSONStrict([]byte(block(t, "yaml")))
	if err != nil {
		t.Fatal(err)
	}
	config := &bootstrapv3.Bootstrap{}
	if err := protojson.Unmarshal(text, config); err != nil {
		t.Fatal(err)
	}
	if err := config.ValidateAll(); err != nil {
		t.Error(err)
	}
	cluster := config.GetStaticResources().GetClusters()[0]
	p := mustPolicy(t, Assignment{Endpoints: fleet(3, 1), ReportInterval: 1})
	served := p.cluster(viewOf(config.GetNode()))
	if cluster.GetName() != served.GetName() || cluster.GetEdsClusterConfig().GetServiceName() != p.assignment(view{}).GetClusterName() ||
		cluster.GetLrsReportEndpointMetrics()[0] != served.GetLrsReportEndpointMetrics()[0] || viewOf(config.GetNode()) != (view{zone: "zone-a"}) {
		t.Errorf("the cluster %v does not go with what is served, %v", cluster, served)
	}
}

// TestDocumentedGRPC runs a client with the bootstrap file of the page, until after the policy is gone.
func TestDocumentedGRPC(t *testing.T) {
	s, at := start(t, Options{})
	backends := startBackends(t, 1)
	set(t, s, Assignment{Policy: "shop/checkout", Endpoints: endpointsOf(backends, 1)})
	const address = "ringwright-balancer.ringwright-system:18000"
	bootstrap := block(t, "json")
	if !strings.Contains(bootstrap, address) {
		t.Fatalf("%s no longer has %s", page, address)
	}
	builder, err := xdsclient.NewXDSResolverWithConfigForTesting([]byte(strings.Replace(bootstrap, address, at, 1)))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///shop/checkout", grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	if err := call(t, client); err != nil {
		t.Fatal(err)
	}
	s.Delete("shop/checkout")
	eventually(t, "the client has heard of it", func() bool { return s.caches[3].views[view{}].linear.NumWatches("shop/checkout") == 1 })
	for range 200 {
		if err := call(t, client); err != nil {
			t.Fatalf("after the policy is gone: %v", err)
		}
	}
}

// TestDocumentedMetrics wants every metric on the page, and none besides.
func TestDocumentedMetrics(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	descs := make(chan *prometheus.Desc, 100)
	s.metrics.Describe(descs)
	close(descs)
	served := make(map[string]bool)
	for desc := range descs {
		served[regexp.MustCompile(`ringwright_xds_\w+`).FindString(desc.String())] = true
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, name := range regexp.MustCompile("`(ringwright_xds_\\w+)`").FindAllStringSubmatch(string(text), -1) {
		documented[name[1]] = true
		if !served[name[1]] {
			t.Errorf("%s is documented, and there is no such metric", name[1])
		}
	}
	for name := range served {
		if !documented[name] {
			t.Errorf("%s is not documented", name)
		}
	}
}

// TestDocumentedClients writes the table of what TestClientsFollowWeights measures.
func TestDocumentedClients(t *testing.T) {
	text, err := os.ReadFile(clientsPage)
	if err != nil {
		t.Fatal(err)
	}
	table := "|---|---|---|\n"
	for i := 0; i < len(behaviours); i += 2 {
		perEndpoint, weights := behaviours[i], behaviours[i+1]
		if perEndpoint.policy != weights.policy || perEndpoint.mode != v1alpha1.EDSLocalityPerEndpoint || weights.mode != v1alpha1.EDSEndpointWeight {
			t.Fatalf("%+v and %+v are no line", perEndpoint, weights)
		}
		table += "| `" + strings.ReplaceAll(perEndpoint.policy, " in ", "` in `") + "` | " + perEndpoint.gets + " | " + weights.gets + " |\n"
	}
	written := regexp.MustCompile(`\|---\|---\|---\|\n(\|.*\n)*`).ReplaceAllLiteralString(string(text), table)
	golden.Assert(t, clientsPage, []byte(written))
	const version = "grpc-go 1.84 "
	if !strings.Contains(written, version) || !strings.HasPrefix(grpc.Version, "1.84.") {
		t.Errorf("the table is of %s; the clients are of %s", version, grpc.Version)
	}
}
