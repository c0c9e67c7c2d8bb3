// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const (
	migratedRing  = "edge-cache"
	migrationName = "v1-to-v3"
	// firstDatacenter moves first; the other one is the remainder, and loses its origin in the first attempt.
	firstDatacenter, brokenDatacenter = "lab01", "ams01"
	// migrationTimeout bounds the whole of it: on a busy machine everything takes many times what is usual.
	migrationTimeout = 10 * time.Minute
)

// migrationManifest is the migration that is shown. Of its soaks and intervals each would be minutes or hours anywhere else.
const migrationManifest = `apiVersion: ringwright.dev/v1alpha1
kind: RingMigration
metadata: {name: v1-to-v3, namespace: default}
spec:
  ringRef: {name: edge-cache}
  stages:
  - name: lab
    datacenters: {names: [lab01]}
    steps:
    - {traffic: 10%%, soak: 3s, gates: [errors]}
    - {traffic: 100%%, soak: 3s, gates: [errors]}
  - name: world
    datacenters: {remainder: true}
    steps:
    - {traffic: 50%%, soak: 3s, gates: [errors]}
    - {traffic: 100%%, soak: 3s, gates: [errors]}
  gates: # All of them judge the soak before the old ring is retired.
  - name: errors
    prometheus:
      address: %s
      query: |
        sum(rate(ringwright_proxy_requests_total{datacenter=~"$datacenters",role="$ring",class="5xx"}[$window]))
          / sum(rate(ringwright_proxy_requests_total{datacenter=~"$datacenters",role="$ring"}[$window]))
      samplesQuery: sum(increase(ringwright_proxy_requests_total{datacenter=~"$datacenters",role="$ring"}[$window]))
      window: 20s
    failWhen: value > 0.02 && value > 2 * baseline
    passWhen: value <= 0.01 || value <= 1.2 * baseline
    minSamples: 10
    interval: 2s
  - name: agents
    consumers: {maxErrorRatio: 1%%}
    minSamples: 10
    interval: 10s
  retirement: {soak: 2s}
`

// migrationDemo moves the agents of two datacenters from one ring to another.
type migrationDemo struct {
	*demo
	api client.Client
	// server is the program, prometheus the address of what runs.
	server, prometheus string
	port               int
	backends           []*backend
	origin             *origin
	agents             []*ringAgent
	traffic            *witness
	ring               *v1alpha1.HashRing
	// before is the digest of the ring that there was, movement the part of the key space that has another owner on the candidate.
	before   string
	movement float64
	// candidate is the digest of that.
	candidate string
	// sets are which keys were on the candidate at each step of the first attempt, initial before it, and present at the last step that
	// was looked at, with its shares.
	sets             map[string]keySets
	initial, present keySets
	shares           map[string]int
	// closed is where the last step was looked at last.
	closed mark
	// last is the soak before the old ring is retired.
	last   *shownStep
	memory [3]memory
	// began is when the migration was created.
	began time.Time
}

func newMigrationDemo(d *demo) *migrationDemo {
	d.ldflags = "-X main.consumerLoopback=true -X main.gateLoopback=true -X main.migrationInterval=500ms"
	d.ringName = migratedRing
	return &migrationDemo{demo: d, origin: newOrigin(), sets: map[string]keySets{}}
}

func (m *migrationDemo) steps() (steps []func(context.Context) error, invite func()) {
	return []func(context.Context) error{
		m.findPrometheus, m.build, m.startControlPlane, m.install, m.startOperator, m.startCaches, m.publishRing, m.startAgents, m.startPrometheus,
		m.warmUp, m.propose, m.migrate, m.retry, m.finish,
	}, m.invite
}

// end stops what is in this process. The programs are stopped after it.
func (m *migrationDemo) end() error {
	if m.traffic != nil {
		m.traffic.end()
	}
	var errs []error
	for _, b := range m.backends {
		errs = append(errs, b.die())
	}
	return errors.Join(errs...)
}

// migrate creates the migration, and follows it until it has gone back: the origin of a datacenter fails before its turn comes.
func (m *migrationDemo) migrate(ctx context.Context) error {
	say("kubectl hashring migration plan -f migration.yaml")
	text, object := fmt.Appendf(nil, migrationManifest, m.prometheus), &v1alpha1.RingMigration{}
	if err := os.WriteFile(m.path("migration.yaml"), text, 0o600); err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, object); err != nil {
		return err
	}
	if err := m.plugin(ctx, "plan", "--filename="+m.path("migration.yaml")); err != nil {
		return err
	}
	say(fmt.Sprintf("kubectl apply: RingMigration %s, first %s, then the remainder", migrationName, firstDatacenter),
		fmt.Sprintf("  Of each datacenter, the agents are asked for %d keys as soon as they have a step, and requests for %d of them go on all the time.", sampledKeys, servedKeys),
		fmt.Sprintf("  Announced is what the step adds to the share, times the movement, and how many of those keys that makes: with %d standard", deviations),
		"  deviations of the binomial distribution to either side, which is right but once in 1.7 million times.")
	m.began = time.Now()
	if err := m.api.Create(ctx, object); err != nil {
		return err
	}
	if err := m.followUntil(ctx, v1alpha1.MigrationRolledBack); err != nil {
		return err
	}
	return m.reportRollback(ctx)
}

// retry has it go forward again, once the cause is gone.
func (m *migrationDemo) retry(ctx context.Context) error {
	say("The origin of " + brokenDatacenter + " is back: kubectl hashring migration retry " + migrationName + " --yes")
	m.origin.reach(brokenDatacenter, true)
	if err := m.plugin(ctx, "retry", migrationName, "--yes"); err != nil {
		return err
	}
	return m.followUntil(ctx, v1alpha1.MigrationSucceeded)
}

// get reads the migration from the API server.
func (m *migrationDemo) get(ctx context.Context) (*v1alpha1.RingMigration, error) {
	object := &v1alpha1.RingMigration{}
	return object, m.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: migrationName}, object)
}

// plugin runs a command of kubectl hashring migration, and shows what it says.
func (m *migrationDemo) plugin(ctx context.Context, args ...string) error {
	args = append([]string{"migration"}, append(args, "--namespace="+namespace, "--kubeconfig="+m.path("kubeconfig"))...)
	out, err := m.run(ctx, args...)
	for line := range strings.Lines(string(out)) {
		fmt.Print("  ", line)
	}
	return err
}

func (m *migrationDemo) invite() {
	say("It is up. Press Ctrl-C to stop all of it.",
		"In another terminal:",
		"  export KUBECONFIG="+m.path("kubeconfig"),
		"  kubectl get ringmigrations -o wide",
		"  kubectl get ringmigration "+migrationName+" -o yaml",
		"  curl "+m.agents[0].url+"/v1/status",
		"  curl '"+m.prometheus+"/api/v1/query?query=ringwright_client_selections_total'",
		"Logs are in "+m.dir+".")
}
