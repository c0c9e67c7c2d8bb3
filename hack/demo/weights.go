// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const (
	shopNamespace, shopName = "shop", "checkout"
	balancerAccount         = "ringwright-balancer"
	// balancerPace makes there be an update every 2 s in place of every 10 s, and WeightSets be written every 6 s; ownerLease is that of an owner,
	// in place of 15 s.
	balancerPace = 5
	ownerLease   = 3 * time.Second
)

// shopManifest is the policy that is shown. Its first five lines are all that one needs: reports come every 5 s then.
const shopManifest = `apiVersion: ringwright.dev/v1alpha1
kind: WeightPolicy
metadata: {name: checkout, namespace: shop}
spec:
  targetRef: {name: checkout}
  load: {sources: [{type: Push, interval: 2s}, {type: LRS, interval: 2s}]}
`

// weightsDemo balances servers of three speeds, and does to them what happens to servers.
type weightsDemo struct {
	*demo
	api     client.Client
	servers []*server
	traffic openLoop
	// conns are those that clients had before the policy, and by xDS.
	conns []*grpc.ClientConn
	// balancer is the process that runs, at addresses that stay when it is started anew.
	balancer                               *process
	listen, httpListen, probes, metricsURL string
	meter                                  meter
	found                                  figures
}

// figures are what max/avg was: before the policy and with it, when a server had been degraded and when the weights had followed, after one had
// been killed, and around the restart of the balancer.
type figures struct{ equal, weighted, degraded, recovered, killed, restarted float64 }

func newWeightsDemo(d *demo) *weightsDemo {
	d.ldflags = fmt.Sprintf("-X main.loopback=true -X main.pace=%d -X main.leaseDuration=%v", balancerPace, ownerLease)
	w := &weightsDemo{demo: d}
	w.meter.servers = func() []*server { return w.servers }
	return w
}

func (w *weightsDemo) steps() (steps []func(context.Context) error, invite func()) {
	return []func(context.Context) error{
		w.buildPrograms, w.startControlPlane, w.install, w.startBalancer, w.openShop, w.showEqual, w.applyPolicy, w.degradeOne, w.killOne, w.restartBalancer,
		w.sum,
	}, w.invite
}

// end stops what is in this process. The programs are stopped after it.
func (w *weightsDemo) end() error {
	w.traffic.stop()
	var errs []error
	for _, conn := range w.conns {
		errs = append(errs, conn.Close())
	}
	for _, s := range w.servers {
		errs = append(errs, s.stop())
	}
	return errors.Join(errs...)
}

func (w *weightsDemo) buildPrograms(ctx context.Context) (err error) {
	if w.root, err = moduleRoot(); err != nil {
		return err
	}
	say("Building balancer and kubectl-hashring")
	return w.compile(ctx, "-ldflags="+w.ldflags, "-o", w.path("bin")+string(filepath.Separator), "./cmd/balancer", "./cmd/kubectl-hashring")
}

// policy reads the policy from the API server.
func (w *weightsDemo) policy(ctx context.Context) (*v1alpha1.WeightPolicy, error) {
	object := &v1alpha1.WeightPolicy{}
	return object, w.api.Get(ctx, client.ObjectKey{Namespace: shopNamespace, Name: shopName}, object)
}

// showStatus shows what kubectl hashring weights status says.
func (w *weightsDemo) showStatus(ctx context.Context) error {
	say(fmt.Sprintf("kubectl hashring weights status %s -n %s", shopName, shopNamespace))
	out, err := w.run(ctx, "weights", "status", shopName, "--namespace="+shopNamespace, "--kubeconfig="+w.path("kubeconfig"))
	for line := range strings.Lines(string(out)) {
		fmt.Print("  ", line)
	}
	return err
}

// sum says what it came to.
func (w *weightsDemo) sum(context.Context) error {
	f := w.found
	say("max/avg",
		fmt.Sprintf("  without the policy %.3f, with it %.3f", f.equal, f.weighted),
		fmt.Sprintf("  a server has half its speed: %.3f, then %.3f", f.degraded, f.recovered),
		fmt.Sprintf("  a server is gone: %.3f", f.killed),
		fmt.Sprintf("  while the balancer was away, and after: %.3f", f.restarted),
		fmt.Sprintf("%d requests were sent, and %d failed, all when the server died", w.traffic.sent.Load(), w.traffic.count()))
	return nil
}

func (w *weightsDemo) invite() {
	say("It is up. Press Ctrl-C to stop all of it.",
		"In another terminal:",
		"  export KUBECONFIG="+w.path("kubeconfig"),
		"  kubectl get weightpolicies -A",
		"  "+w.path("bin", "kubectl-hashring")+fmt.Sprintf(" weights explain %s -n %s", shopName, shopNamespace),
		"  kubectl get weightset -n "+shopNamespace+" -o yaml",
		"  curl -s "+w.metricsURL+" | grep ringwright_",
		"Logs are in "+w.dir+".")
}
