// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/agentapi"
)

// agentsOfDatacenter is how many agents each of the two has.
const agentsOfDatacenter = 2

// cacheWeight makes the rings as large as those of a fleet: it multiplies points.
const cacheWeight = 100

// The algorithm that there is, and the one that is wanted. V3 needs fewer points for less imbalance.
var (
	oldAlgorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV1, PointsPerWeight: 160}
	newAlgorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV3, PointsPerWeight: 40}
)

// ringAgent is an agent that runs.
type ringAgent struct {
	name, datacenter   string
	url, proxy, status string
	pid                int
}

// ask returns what it says of itself.
func (a *ringAgent) ask(ctx context.Context) (agentapi.Status, error) {
	var said agentapi.Status
	err := get(ctx, "http://"+a.status+agentapi.StatusPath, func(r *http.Response) error { return json.UnmarshalRead(r.Body, &said) })
	return said, err
}

func (m *migrationDemo) publishRing(ctx context.Context) (err error) {
	say(fmt.Sprintf("kubectl apply: HashRing %s of them, algorithm %s", migratedRing, oldAlgorithm.Version))
	if m.api, err = m.client(); err != nil {
		return err
	}
	if m.port, err = freePort(); err != nil {
		return err
	}
	m.ring = &v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: migratedRing},
		Spec: v1alpha1.HashRingSpec{
			Identity: v1alpha1.IdentityName, Algorithm: oldAlgorithm,
			Publication: v1alpha1.Publication{MinInterval: &metav1.Duration{}},
			Consumers:   &v1alpha1.Consumers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"reads": migratedRing}}, Port: int32(m.port)},
		},
	}
	for _, b := range m.backends {
		host, port, _ := strings.Cut(b.address, ":")
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			return err
		}
		m.ring.Spec.Backends = append(m.ring.Spec.Backends, v1alpha1.Backend{
			Name: b.name, Address: host, Port: ptr.To(int32(number)), Weight: ptr.To(int32(cacheWeight)),
		})
	}
	if err := m.api.Create(ctx, m.ring); err != nil {
		return err
	}
	return m.waitPublished(ctx, migratedRing)
}

// startAgents starts the agents of both datacenters, with the pods that the operator finds them by.
func (m *migrationDemo) startAgents(ctx context.Context) error {
	say(fmt.Sprintf("Starting %d agents in each of %s and %s, which route requests to the caches", agentsOfDatacenter, firstDatacenter, brokenDatacenter))
	for _, datacenter := range []string{firstDatacenter, brokenDatacenter} {
		for range agentsOfDatacenter {
			if err := m.startRingAgent(ctx, datacenter); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *migrationDemo) startRingAgent(ctx context.Context, datacenter string) error {
	number := len(m.agents)
	a := &ringAgent{name: fmt.Sprintf("agent-%s-%d", datacenter, number%agentsOfDatacenter+1), datacenter: datacenter}
	// Pods have a port in common and addresses of their own; those of loopback are enough.
	ip := fmt.Sprintf("127.0.3.%d", number+1)
	a.status = net.JoinHostPort(ip, strconv.Itoa(m.port))
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	if a.proxy, err = freeAddress(); err != nil {
		return err
	}
	a.url = "http://" + listen
	p, err := m.startProcess("agent", "--source=api", "--hashring="+namespace+"/"+migratedRing, "--kubeconfig="+m.path("kubeconfig"), "--dir="+m.path(a.name),
		"--listen="+listen, "--status-listen="+a.status, "--datacenter="+datacenter, "--proxy-listen="+a.proxy, "--proxy-key=${path}",
		"--proxy-decision-header="+decisionHeader, "--proxy-cache-status-header="+statusHeader)
	if err != nil {
		return err
	}
	a.pid = p.cmd.Process.Pid
	m.agents = append(m.agents, a)
	if err := p.waitReady(ctx, a.url+"/readyz"); err != nil {
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.name, Labels: map[string]string{"reads": migratedRing}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "ringwright"}}},
	}
	if err := m.api.Create(ctx, pod); err != nil {
		return err
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
	return m.api.Status().Update(ctx, pod)
}

// propose asks for the other algorithm, and waits for the candidate. No key moves by that.
func (m *migrationDemo) propose(ctx context.Context) error {
	say(fmt.Sprintf("kubectl apply: HashRing %s with algorithm %s", migratedRing, newAlgorithm.Version))
	if err := m.readRing(ctx); err != nil {
		return err
	}
	m.before = m.ring.Status.Active.Digest
	patch := client.MergeFrom(m.ring.DeepCopy())
	m.ring.Spec.Algorithm = newAlgorithm
	if err := m.api.Patch(ctx, m.ring, patch); err != nil {
		return err
	}
	err := waitFor(ctx, "the candidate", func(ctx context.Context) error {
		if err := m.readRing(ctx); err != nil {
			return err
		}
		if m.ring.Status.Candidate == nil {
			return fmt.Errorf("HashRing %s has none", migratedRing)
		}
		return nil
	})
	if err != nil {
		return err
	}
	candidate := m.ring.Status.Candidate
	if m.movement, err = strconv.ParseFloat(strings.TrimSuffix(candidate.Movement, "%"), 64); err != nil {
		return err
	}
	m.movement, m.candidate = m.movement/100, candidate.Digest
	fmt.Printf("  %s waits as the candidate for a migration: %s of the key space has another owner there. Nothing has moved\n", short(candidate.Digest), candidate.Movement)
	return m.checkAgents(ctx, map[string]int{})
}

func (m *migrationDemo) readRing(ctx context.Context) error {
	return m.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: migratedRing}, m.ring)
}

// short is a digest for people.
func short(digest string) string { return digest[:min(len(digest), 19)] }
