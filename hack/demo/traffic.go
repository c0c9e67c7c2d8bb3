// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	trafficRing     = "traffic"
	trafficBackends = 10
	trafficKeys     = 500
	// trafficWorkers send requests all the time, each to the two agents in turn, with a pause in between.
	trafficWorkers = 4
	trafficPause   = 2 * time.Millisecond
)

// traffic is a ring of small HTTP backends, the agents that route to them, and the requests that go through those.
type traffic struct {
	*demo
	backends []*backend
	agents   []string
	keys     []string
	client   *http.Client
	load
}

// showTraffic sends requests through two agents while a backend dies, comes back, and the weights change. None may fail, and only
// those keys may move that were announced.
func (d *demo) showTraffic(ctx context.Context) (err error) {
	say("Sending traffic through two agents to ten HTTP backends")
	t := &traffic{demo: d, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * trafficWorkers}}}
	for i := range trafficKeys {
		t.keys = append(t.keys, "/objects/"+strconv.Itoa(i))
	}
	defer func() { err = errors.Join(err, t.end()) }()
	for _, step := range []func(context.Context) error{
		t.startBackends, t.publish, t.startAgents, t.begin, t.killBackend, t.changeWeight,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return t.sum()
}

func (t *traffic) startBackends(context.Context) error {
	for i := range trafficBackends {
		b := &backend{name: fmt.Sprintf("cache-%d", i)}
		if err := b.start(); err != nil {
			return err
		}
		t.backends = append(t.backends, b)
	}
	return nil
}

// manifest returns the HashRing of the backends. One of them can have twice the weight of the others.
func (t *traffic) manifest(heavy string) ([]byte, error) {
	list := make([]any, 0, len(t.backends))
	for _, b := range t.backends {
		host, port, _ := strings.Cut(b.address, ":")
		number, err := strconv.ParseInt(port, 10, 64)
		if err != nil {
			return nil, err
		}
		weight := int64(1)
		if b.name == heavy {
			weight = 2
		}
		list = append(list, map[string]any{"name": b.name, "address": host, "port": number, "weight": weight})
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "ringwright.dev/v1alpha1", "kind": "HashRing",
		"metadata": map[string]any{"name": trafficRing, "namespace": namespace},
		"spec":     map[string]any{"identity": "Name", "backends": list},
	})
}

// apply writes a manifest to a file and applies it.
func (t *traffic) apply(ctx context.Context, file, heavy string) error {
	text, err := t.manifest(heavy)
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.path(file), text, 0o600); err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		return err
	}
	if err := t.controlPlane.Apply(ctx, object); err != nil {
		return err
	}
	return t.waitPublished(ctx, trafficRing)
}

func (t *traffic) publish(ctx context.Context) error { return t.apply(ctx, "traffic.yaml", "") }

// startAgents starts one agent in each of two datacenters, each with a mount of its own.
func (t *traffic) startAgents(ctx context.Context) error {
	c, err := t.demo.client()
	if err != nil {
		return err
	}
	for _, datacenter := range []string{"east", "west"} {
		dir := t.path("traffic-" + datacenter)
		if err := t.follow(ctx, c, trafficRing, dir); err != nil {
			return err
		}
		listen, err := freeAddress()
		if err != nil {
			return err
		}
		proxy, err := freeAddress()
		if err != nil {
			return err
		}
		p, err := t.startProcess("agent", "--dir="+dir, "--listen="+listen, "--proxy-listen="+proxy, "--proxy-key=${path}", "--datacenter="+datacenter)
		if err != nil {
			return err
		}
		if err := p.waitReady(ctx, "http://"+listen+"/readyz"); err != nil {
			return err
		}
		t.agents = append(t.agents, "http://"+proxy)
	}
	return nil
}

// begin compares the first answers with the command line's, and starts the requests that go on until the end.
func (t *traffic) begin(ctx context.Context) error {
	if err := t.expect(ctx, t.path("traffic-east"), ""); err != nil {
		return err
	}
	fmt.Printf("  %d keys go where kubectl hashring lookup says, through both agents\n", len(t.keys))
	t.load.begin(ctx, trafficWorkers, func(ctx context.Context, worker, i int) error {
		i += worker
		_, err := t.ask(ctx, t.agents[i%len(t.agents)], t.keys[i%len(t.keys)])
		return err
	})
	return nil
}

// ask returns the name of the backend that answers a key through an agent.
func (t *traffic) ask(ctx context.Context, agent, key string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, agent+key, nil)
	if err != nil {
		return "", err
	}
	response, err := t.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", key, response.Status, body)
	}
	return string(body), err
}

// owners returns who answers each key through an agent.
func (t *traffic) owners(ctx context.Context, agent string) (map[string]string, error) {
	answers := map[string]string{}
	for _, key := range t.keys {
		name, err := t.ask(ctx, agent, key)
		if err != nil {
			return nil, err
		}
		answers[key] = name
	}
	return answers, nil
}

// sum stops the requests and says how they went.
func (t *traffic) sum() error {
	t.load.stop()
	if failed := t.failed.Load(); failed > 0 {
		return fmt.Errorf("%d of %d requests failed, the first with: %w", failed, t.sent.Load(), *t.failure.Load())
	}
	fmt.Printf("  %d requests were sent meanwhile, and none failed\n", t.sent.Load())
	return nil
}

// end stops what is still running.
func (t *traffic) end() error {
	t.load.stop()
	t.client.CloseIdleConnections()
	var errs []error
	for _, b := range t.backends {
		errs = append(errs, b.die())
	}
	return errors.Join(errs...)
}
