// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestTimeout ends a request to an API server that does not answer yet.
const requestTimeout = 2 * time.Second

// api asks the node's API server the few questions that this program has.
type api struct {
	client *http.Client
	url    string
}

func newAPI(kubeconfig string) (*api, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.Timeout = requestTimeout
	// A proxy of the environment does not know the node.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &api{client, config.Host}, nil
}

// get reads path into the value that into points to, unless that is nil.
func (a *api) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	if err != nil {
		return err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

// ready reports whether the node takes pods: it is Ready, and the account that pods have by default is there.
func (a *api) ready(ctx context.Context) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := a.get(ctx, "/api/v1/nodes/"+nodeName, &node); err != nil {
		return err
	}
	ready := false
	for _, c := range node.Status.Conditions {
		if c.Type == "Ready" && c.Status != "True" {
			return fmt.Errorf("the node is not ready: %s", c.Message)
		}
		ready = ready || c.Type == "Ready"
	}
	if !ready {
		return fmt.Errorf("the node has no condition Ready")
	}
	return a.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
}
