// SPDX-License-Identifier: Apache-2.0

package main

import "path/filepath"

// component is one of the programs that make up the node.
type component struct {
	name string // That of its log.
	path string
	args []string
}

// datastore, runtime and the API server start at once: they wait for each other or do not care.
func (s spec) firstComponents() []component {
	return []component{s.etcd(), s.containerd(), s.apiServer()}
}

// lateComponents are those that want an API server that answers.
func (s spec) lateComponents() []component {
	list := []component{s.controllerManager(), s.scheduler(), s.kubelet()}
	return append(list, component{"kube-proxy", s.program("kube-proxy"), []string{"--config=" + s.file("kube-proxy.yaml")}})
}

func (s spec) file(name string) string    { return filepath.Join(s.State, name) }
func (s spec) pki(name string) string     { return filepath.Join(s.State, "pki", name) }
func (s spec) program(name string) string { return filepath.Join(s.Programs, name) }
func (s spec) ctr() string                { return filepath.Join(s.Containerd, "ctr") }

func (s spec) etcd() component {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return component{"etcd", filepath.Join(s.ControlPlane, "etcd"), []string{
		"--name=" + nodeName, "--data-dir=" + s.file("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + nodeName + "=" + peer,
		"--unsafe-no-fsync", // The data does not outlive the node.
		"--log-level=warn",
	}}
}

func (s spec) containerd() component {
	return component{"containerd", filepath.Join(s.Containerd, "containerd"), []string{"--config", s.file("containerd.toml")}}
}

func (s spec) apiServer() component {
	return component{"kube-apiserver", filepath.Join(s.ControlPlane, "kube-apiserver"), []string{
		"--etcd-servers=http://127.0.0.1:2379",
		"--bind-address=" + nodeIP, "--advertise-address=" + nodeIP, "--secure-port=" + apiPort,
		"--tls-cert-file=" + s.pki("apiserver.crt"), "--tls-private-key-file=" + s.pki("apiserver.key"),
		"--client-ca-file=" + s.pki("ca.crt"),
		"--service-cluster-ip-range=" + serviceNet,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.pki("service-accounts.pub"),
		"--service-account-signing-key-file=" + s.pki("service-accounts.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + s.pki("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + s.pki("apiserver-kubelet.key"),
		"--kubelet-certificate-authority=" + s.pki("ca.crt"),
		"--endpoint-reconciler-type=lease",
	}}
}

func (s spec) controllerManager() component {
	return component{"kube-controller-manager", s.program("kube-controller-manager"), []string{
		"--kubeconfig=" + s.file("controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1", "--leader-elect=false",
		"--root-ca-file=" + s.pki("ca.crt"),
		"--service-account-private-key-file=" + s.pki("service-accounts.key"), "--use-service-account-credentials",
		"--cluster-signing-cert-file=" + s.pki("ca.crt"), "--cluster-signing-key-file=" + s.pki("ca.key"),
		"--allocate-node-cidrs", "--cluster-cidr=" + podNet, "--service-cluster-ip-range=" + serviceNet,
	}}
}

func (s spec) scheduler() component {
	return component{"kube-scheduler", s.program("kube-scheduler"), []string{
		"--kubeconfig=" + s.file("scheduler.kubeconfig"), "--bind-address=127.0.0.1", "--leader-elect=false",
	}}
}

func (s spec) kubelet() component {
	args := []string{
		"--config=" + s.file("kubelet.yaml"), "--kubeconfig=" + s.file("kubelet.kubeconfig"),
		"--hostname-override=" + nodeName, "--node-ip=" + nodeIP,
	}
	if s.KubeletDropIn != "" {
		args = append(args, "--config-dir="+s.KubeletDropIn)
	}
	return component{"kubelet", s.program("kubelet"), args}
}
