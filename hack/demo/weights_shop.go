// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/authn"
)

// startBalancer starts one replica as its service account.
func (w *weightsDemo) startBalancer(ctx context.Context) (err error) {
	say("Starting a balancer as service account "+balancerAccount, fmt.Sprintf("  It computes weights every %v in place of 10 s, and its lease is %v in place of 15 s", 10*time.Second/balancerPace, ownerLease))
	if w.api, err = w.client(); err != nil {
		return err
	}
	user, err := w.controlPlane.ServiceAccount(systemNamespace, balancerAccount)
	if err != nil {
		return err
	}
	if err := os.WriteFile(w.path("balancer.kubeconfig"), user.Kubeconfig, 0o600); err != nil {
		return err
	}
	if err := w.writeToken(ctx, systemNamespace, balancerAccount, nil); err != nil {
		return err
	}
	for _, address := range []*string{&w.listen, &w.httpListen, &w.probes, &w.metricsURL} {
		if *address, err = freeAddress(); err != nil {
			return err
		}
	}
	return w.runBalancer(ctx)
}

// runBalancer starts the process.
func (w *weightsDemo) runBalancer(ctx context.Context) (err error) {
	w.balancer, err = w.startProcess("balancer", "--kubeconfig="+w.path("balancer.kubeconfig"), "--name=balancer-1", "--namespace="+systemNamespace,
		"--listen="+w.listen, "--http-listen="+w.httpListen, "--token-file="+w.tokenFile(balancerAccount), "--anonymous-lrs",
		"--metrics-bind-address="+w.metricsURL, "--metrics-insecure", "--health-probe-bind-address="+w.probes)
	if err != nil {
		return err
	}
	return w.balancer.waitReady(ctx, "http://"+w.probes+"/readyz")
}

func (w *weightsDemo) tokenFile(name string) string { return w.path(name + ".token") }

// writeToken writes what kubelet would mount into a pod: a token of its service account for the balancer, bound to the pod if there is one.
func (w *weightsDemo) writeToken(ctx context.Context, namespace, account string, pod *corev1.Pod) error {
	name := account
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{authn.DefaultAudience}, ExpirationSeconds: ptr.To[int64](3600 * 24),
	}}
	if pod != nil {
		name = pod.Name
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := w.api.SubResource("token").Create(ctx, object, request); err != nil {
		return fmt.Errorf("making a token of %s: %w", name, err)
	}
	return os.WriteFile(w.tokenFile(name), []byte(request.Status.Token), 0o600)
}

// openShop starts the servers, and makes what a cluster would have of them: a Service, pods and EndpointSlices.
func (w *weightsDemo) openShop(ctx context.Context) error {
	say(fmt.Sprintf("Starting Service %s with %d gRPC servers: %s", shopName, len(speeds), describeSpeeds(speeds)))
	meta := metav1.ObjectMeta{Namespace: shopNamespace, Name: shopName}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shopNamespace}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": shopName}, Ports: []corev1.ServicePort{{Name: "grpc", Port: 80, Protocol: corev1.ProtocolTCP}},
		}},
	} {
		if err := w.api.Create(ctx, object); err != nil {
			return err
		}
	}
	for i, speed := range speeds {
		s, err := startServer(shopName+"-"+strconv.Itoa(i+1), speed)
		if err != nil {
			return err
		}
		w.servers = append(w.servers, s)
		if err := w.enlist(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// enlist makes the pod of a server, its token, and its EndpointSlice. That has a name for an address, because the API server takes none of
// loopback, and the balancer of the demo knows what it stands for.
func (w *weightsDemo) enlist(ctx context.Context, s *server) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: s.name, Labels: map[string]string{"app": shopName}},
		Spec:       corev1.PodSpec{ServiceAccountName: shopName, Containers: []corev1.Container{{Name: "server", Image: "server"}}},
	}
	if err := w.api.Create(ctx, pod); err != nil {
		return err
	}
	if err := w.writeToken(ctx, shopNamespace, shopName, pod); err != nil {
		return err
	}
	return w.api.Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: shopNamespace, Name: s.name, Labels: map[string]string{discoveryv1.LabelServiceName: shopName}},
		AddressType: discoveryv1.AddressTypeFQDN,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("grpc"), Port: ptr.To(s.port), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{s.name + ".localhost"},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: shopNamespace, Name: pod.Name, UID: pod.UID},
		}},
	})
}

// delist takes the EndpointSlice of a server away, as Kubernetes does when its pod is gone.
func (w *weightsDemo) delist(ctx context.Context, s *server) error {
	return client.IgnoreNotFound(w.api.Delete(ctx, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: s.name}}))
}
