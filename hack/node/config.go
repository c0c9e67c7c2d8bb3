// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
	"time"
)

//go:embed config
var templates embed.FS

// spec is what a node is started with. The process that becomes its init reads it from the state directory.
type spec struct {
	State         string        // The directory of the node's state.
	Logs          string        // That of its logs.
	Programs      string        // That of the programs of Kubernetes that run on a node.
	ControlPlane  string        // That of etcd and kube-apiserver.
	Containerd    string        // That of containerd, its shim and ctr.
	CNI           string        // That of the CNI plugins.
	SyncFrequency time.Duration // The kubelet's; 0 for its own default.
	KubeletDropIn string        // A directory of further kubelet configuration, or "".
	Hierarchies   []hierarchy
}

// readSpec reads what up has written.
func readSpec(path string) (s spec, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("reading %s: %w", path, err)
	}
	return s, nil
}

// These make the constants known to the templates.

func (spec) PauseImage() string { return pauseImage }
func (spec) NodePodNet() string { return nodePodNet }
func (spec) PodNet() string     { return podNet }
func (spec) NodeIP() string     { return nodeIP }
func (spec) NodeName() string   { return nodeName }

// configFiles says where each template goes below the state directory.
var configFiles = map[string]string{
	"containerd.toml": "containerd.toml",
	"cni.conflist":    "cni/10-ringwright.conflist",
	"kubelet.yaml":    "kubelet.yaml",
	"kube-proxy.yaml": "kube-proxy.yaml",
}

// render fills in one template.
func (s spec) render(name string) ([]byte, error) {
	t, err := template.ParseFS(templates, "config/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, s); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// writeConfig writes the configuration of all components.
func (s spec) writeConfig() error {
	for name, place := range configFiles {
		data, err := s.render(name)
		if err != nil {
			return err
		}
		path := filepath.Join(s.State, place)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	// Nothing in the node has anybody to ask for names.
	return os.WriteFile(filepath.Join(s.State, "resolv.conf"), nil, 0o644)
}
