// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

const (
	systemNamespace = "ringwright-system"
	serviceAccount  = "ringwright-controller-manager"
)

// policy has the API server write down what the operator writes, but for the Lease that it renews all the time, and the event
// that says who holds it.
const policy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  resources: [{group: coordination.k8s.io}]
- level: None
  namespaces: [` + systemNamespace + `]
  resources: [{group: "", resources: [events]}, {group: events.k8s.io, resources: [events]}]
- level: Metadata
  users: ["system:serviceaccount:` + systemNamespace + `:` + serviceAccount + `"]
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// cluster is an API server with config/default installed, and a namespace for the rings.
type cluster struct {
	controlPlane *testenv.ControlPlane
	config       *rest.Config
	admin        client.Client
	namespace    string
	auditLog     string
	// read is how far writes has read the audit log.
	read int64
}

func (l *load) startControlPlane(ctx context.Context) error {
	l.say("starting etcd and kube-apiserver")
	c := &cluster{auditLog: filepath.Join(l.dir, "audit.log")}
	policyFile := filepath.Join(l.dir, "policy.yaml")
	if err := os.WriteFile(policyFile, []byte(policy), 0o600); err != nil {
		return err
	}
	var err error
	c.controlPlane, err = testenv.Start(ctx, testenv.Options{
		CRDPaths: []string{}, // They come with the rest of config/default.
		Configure: func(env *envtest.Environment) {
			env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policyFile).Set("audit-log-path", c.auditLog)
		},
	})
	if err != nil {
		return err
	}
	l.cluster = c
	c.config = c.controlPlane.Config()
	c.config.QPS = -1 // The load is not to be held back here.
	scheme, err := manager.Scheme()
	if err != nil {
		return err
	}
	if c.admin, err = client.New(c.config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	// There is no node that could run the Deployment.
	noDeployment := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" }
	if err := c.controlPlane.Install(ctx, filepath.Join(l.root, "config", "default"), noDeployment); err != nil {
		return err
	}
	c.namespace, err = c.controlPlane.CreateNamespace(ctx, "load-")
	return err
}

// writes counts what the operator has written since the last call, by verb and resource. The API server appends to its log
// before it answers.
func (c *cluster) writes() (map[string]int, error) {
	counts := map[string]int{}
	file, err := os.Open(c.auditLog)
	if errors.Is(err, os.ErrNotExist) {
		return counts, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(c.read, io.SeekStart); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF { // What is left is a line that is being written.
			return counts, nil
		}
		if err != nil {
			return nil, err
		}
		c.read += int64(len(line))
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if ref := event.ObjectRef; ref != nil {
			counts[event.Verb+" "+filepath.Join(ref.Resource, ref.Subresource)]++
		}
	}
}

func sum(counts map[string]int) float64 {
	total := 0
	for _, count := range counts {
		total += count
	}
	return float64(total)
}
