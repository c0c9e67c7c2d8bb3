// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

func testSpec(t *testing.T) spec {
	return spec{
		State: t.TempDir(), Programs: "/programs", ControlPlane: "/plane", Containerd: "/containerd/usr/bin", CNI: "/cni",
	}
}

// kubelet parses the kubelet's configuration.
func kubelet(t *testing.T, s spec) map[string]any {
	t.Helper()
	data, err := s.render("kubelet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		t.Fatalf("%v in:\n%s", err, data)
	}
	return config
}

func TestSyncFrequency(t *testing.T) {
	s := testSpec(t)
	if got, set := kubelet(t, s)["syncFrequency"]; set {
		t.Errorf("syncFrequency is %v although nobody asked for one: the kubelet has a default of its own", got)
	}
	s.SyncFrequency = 1500 * time.Millisecond
	if got := kubelet(t, s)["syncFrequency"]; got != "1.5s" {
		t.Errorf("syncFrequency is %v, want 1.5s", got)
	}
}

func TestWriteConfig(t *testing.T) {
	s := testSpec(t)
	if err := s.writeConfig(); err != nil {
		t.Fatal(err)
	}
	wants := map[string][]string{
		"containerd.toml":            {`root = "` + s.State + `/containerd"`, `sandbox_image = "localhost/ringwright-pause:1"`, `bin_dir = "/cni"`},
		"cni/10-ringwright.conflist": {`"subnet": "10.244.0.0/24"`},
		"kubelet.yaml":               {"address: 172.31.255.2", s.State + "/pki/ca.crt"},
		"kube-proxy.yaml":            {"clusterCIDR: 10.244.0.0/16", s.State + "/proxy.kubeconfig"},
		"resolv.conf":                nil,
	}
	for file, texts := range wants {
		data, err := os.ReadFile(filepath.Join(s.State, file))
		if err != nil {
			t.Error(err)
		}
		for _, text := range texts {
			if !bytes.Contains(data, []byte(text)) {
				t.Errorf("%s lacks %s:\n%s", file, text, data)
			}
		}
	}
	conflist, err := s.render("cni.conflist")
	if err != nil || !json.Valid(conflist) {
		t.Errorf("cni.conflist is not JSON, %v", err)
	}
}

func TestComponents(t *testing.T) {
	s := testSpec(t)
	s.State = "/state"
	s.KubeletDropIn = "/state/kubelet.conf.d"
	all := slices.Concat(s.firstComponents(), s.lateComponents())
	wants := map[string]string{
		"etcd":                    "/plane/etcd --data-dir=/state/etcd",
		"containerd":              "/containerd/usr/bin/containerd /state/containerd.toml",
		"kube-apiserver":          "/plane/kube-apiserver --client-ca-file=/state/pki/ca.crt --authorization-mode=Node,RBAC",
		"kube-controller-manager": "/programs/kube-controller-manager --cluster-signing-key-file=/state/pki/ca.key",
		"kube-scheduler":          "/programs/kube-scheduler --kubeconfig=/state/scheduler.kubeconfig",
		"kubelet":                 "/programs/kubelet --config-dir=/state/kubelet.conf.d",
		"kube-proxy":              "/programs/kube-proxy --config=/state/kube-proxy.yaml",
	}
	for _, c := range all {
		want := strings.Fields(wants[c.name])
		if len(want) == 0 || c.path != want[0] {
			t.Errorf("%s is started as %s, want %v", c.name, c.path, want)
			continue
		}
		for _, arg := range want[1:] {
			if !slices.Contains(c.args, arg) {
				t.Errorf("%s lacks the argument %s: %q", c.name, arg, c.args)
			}
		}
		delete(wants, c.name)
	}
	if len(wants) > 0 {
		t.Errorf("not started: %v", wants)
	}
	s.KubeletDropIn = ""
	if args := strings.Join(s.kubelet().args, " "); strings.Contains(args, "--config-dir") {
		t.Errorf("the kubelet without a drop-in has %s", args)
	}
}

func TestPKI(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	authority, err := writePKI(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.cert)
	for _, id := range identities() {
		data, err := os.ReadFile(filepath.Join(dir, id.file+".crt"))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(data)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		usage := x509.ExtKeyUsageClientAuth
		if len(id.hosts) > 0 {
			usage = x509.ExtKeyUsageServerAuth
		}
		for _, host := range append(id.hosts, "") {
			options := x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: now}
			if _, err := cert.Verify(options); err != nil {
				t.Errorf("%s is not valid for %q: %v", id.file, host, err)
			}
		}
		info, err := os.Stat(filepath.Join(dir, id.file+".key"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key of %s: %v, %v, want it for its owner only", id.file, info.Mode(), err)
		}
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	authority, err := writePKI(filepath.Join(dir, "pki"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := authority.writeKubeconfig(path, "admin"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil || config.Host != "https://172.31.255.2:6443" {
		t.Errorf("the kubeconfig is for %v, %v", config, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig: %v, %v, want it for its owner only", info.Mode(), err)
	}
}
