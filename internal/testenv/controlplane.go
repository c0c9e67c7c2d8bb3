// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// startTimeout is for one program. The five seconds that are usual become many on a
	// busy machine, and a test that fails for that is worse than one that waits.
	startTimeout = 2 * time.Minute
	// startLimit is for the whole start: envtest tries five times.
	startLimit = 5 * time.Minute
)

// Options say how a control plane is started. The zero value is what tests want.
type Options struct {
	// Assets is the directory of etcd and kube-apiserver. Default: see Assets.
	Assets string
	// CRDPaths are files or directories of CRDs to install. Default: config/crd/bases
	// of the module that the working directory is in. Empty but not nil: none.
	CRDPaths []string
	// Configure, if set, may change the environment just before it is started, to set
	// flags of the API server for instance. Webhooks are not supported.
	Configure func(*envtest.Environment)
	// Log receives the progress of a build of the programs. Default: standard error.
	Log io.Writer
}

// ControlPlane is a running API server. Its methods may be called concurrently.
type ControlPlane struct {
	env    *envtest.Environment
	guard  *guard
	client client.Client // The admin's.
	unhook func() bool   // Forgets the context of Start.
}

// Start starts a control plane, which runs until Stop is called or ctx ends. The caller
// calls Stop in either case, as only its return means that everything is gone.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	if err := opts.complete(ctx); err != nil {
		return nil, err
	}
	g, err := newGuard()
	if err != nil {
		return nil, fmt.Errorf("guarding the control plane: %w", err)
	}
	cp := &ControlPlane{guard: g, unhook: func() bool { return true }}
	err = cp.start(ctx, opts)
	if err = errors.Join(err, g.closeLogs()); err != nil {
		err = fmt.Errorf("starting the control plane: %w%s", err, g.logTails())
		return nil, errors.Join(err, cp.Stop())
	}
	cp.unhook = context.AfterFunc(ctx, func() { _ = g.kill() }) // The caller's Stop reports the error.
	return cp, nil
}

// complete sets the defaults.
func (o *Options) complete(ctx context.Context) (err error) {
	if o.Log == nil {
		o.Log = os.Stderr
	}
	if o.CRDPaths == nil {
		root, err := ModuleRoot()
		if err != nil {
			return fmt.Errorf("finding the CRDs: %w", err)
		}
		o.CRDPaths = []string{filepath.Join(root, "config", "crd", "bases")}
	}
	if o.Assets == "" {
		o.Assets, err = Assets(ctx, o.Log)
	}
	return err
}

// start starts the programs and makes the client.
func (cp *ControlPlane) start(ctx context.Context, opts Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready in %s", startLimit))
	defer cancel()
	env, err := cp.guard.environment(opts)
	if err != nil {
		return err
	}
	if opts.Configure != nil {
		opts.Configure(env)
	}
	cp.env = env

	started := make(chan struct{})
	go func() {
		defer close(started)
		_, err = env.Start()
	}()
	select {
	case <-started:
	case <-ctx.Done():
		// envtest does not know of ctx, but it fails when its programs are gone.
		killErr := cp.guard.kill()
		<-started
		err = errors.Join(context.Cause(ctx), killErr)
	}
	if err != nil {
		return err
	}
	// envtest makes a directory of certificates even when there is no webhook.
	if err := env.WebhookInstallOptions.Cleanup(); err != nil {
		return err
	}
	cp.client, err = client.New(env.Config, client.Options{})
	return err
}

// Stop ends the control plane and removes its data. It may be called more than once,
// and returns the same each time: nil, unless something may be left. The programs are
// killed: there is nothing to save, and an API server that is asked to end waits for its
// watchers, such as a manager that a test has left running.
func (cp *ControlPlane) Stop() error {
	cp.unhook()
	return cp.guard.kill()
}

// Config returns a new copy of the admin's configuration. Its ContentType is empty, as
// server-side apply of built-in types fails with protobuf.
func (cp *ControlPlane) Config() *rest.Config {
	return rest.CopyConfig(cp.env.Config)
}

// Kubeconfig returns a kubeconfig file of the admin. The caller must not change it.
func (cp *ControlPlane) Kubeconfig() []byte {
	return cp.env.KubeConfig
}
