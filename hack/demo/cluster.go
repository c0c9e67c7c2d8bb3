// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

const (
	systemNamespace = "ringwright-system"
	serviceAccount  = "ringwright-controller-manager"
)

func moduleRoot() (string, error) { return testenv.ModuleRoot() }

func (d *demo) startControlPlane(ctx context.Context) error {
	say("Starting etcd and kube-apiserver")
	cp, err := testenv.Start(ctx, testenv.Options{CRDPaths: []string{}})
	if err != nil {
		return err
	}
	d.controlPlane = cp
	return os.WriteFile(d.path("kubeconfig"), cp.Kubeconfig(), 0o600)
}

// install applies config/default but for the Deployment: there is no node that could run it.
func (d *demo) install(ctx context.Context) error {
	say("Installing config/default: CRD, roles, service account")
	return d.controlPlane.Install(ctx, filepath.Join(d.root, "config", "default"), func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment"
	})
}

func (d *demo) startOperator(ctx context.Context) error {
	say("Starting the operator as service account " + serviceAccount)
	user, err := d.controlPlane.ServiceAccount(systemNamespace, serviceAccount)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.path("manager.kubeconfig"), user.Kubeconfig, 0o600); err != nil {
		return err
	}
	probes, err := freeAddress()
	if err != nil {
		return err
	}
	p, err := d.startProcess("manager", "--kubeconfig="+d.path("manager.kubeconfig"), "--leader-elect",
		"--leader-election-namespace="+systemNamespace, "--catalog-namespace="+systemNamespace, "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address="+probes)
	if err != nil {
		return err
	}
	return p.waitReady(ctx, "http://"+probes+"/readyz")
}

// applySamples applies config/samples server-side and waits until each ring is published whose backends are all in its spec: for
// the others there are no Services.
func (d *demo) applySamples(ctx context.Context) error {
	say("Applying config/samples")
	paths, err := filepath.Glob(filepath.Join(d.root, "config", "samples", "hashring_*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		object.SetNamespace(namespace)
		if filepath.Base(path) == shownRing {
			d.ringName = object.GetName()
		}
		if err := d.controlPlane.Apply(ctx, object); err != nil {
			return err
		}
		if _, waits, _ := unstructured.NestedSlice(object.Object, "spec", "backendsFrom"); waits {
			fmt.Printf("%s serverside-applied, waits for its Services\n", object.GetName())
			continue
		}
		if err := d.waitPublished(ctx, object.GetName()); err != nil {
			return err
		}
		fmt.Printf("%s serverside-applied, published\n", object.GetName())
	}
	if d.ringName == "" {
		return fmt.Errorf("config/samples has no %s", shownRing)
	}
	return nil
}

// waitPublished waits until the ring of the present spec is published.
func (d *demo) waitPublished(ctx context.Context, name string) error {
	c, err := d.client()
	if err != nil {
		return err
	}
	return waitFor(ctx, "HashRing "+name+" to be published", func(ctx context.Context) error {
		ring := &v1alpha1.HashRing{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ring); err != nil {
			return err
		}
		published := meta.FindStatusCondition(ring.Status.Conditions, string(v1alpha1.ConditionPublished))
		switch {
		case published == nil || published.ObservedGeneration != ring.Generation:
			return fmt.Errorf("the operator has not looked at it yet")
		case published.Status != metav1.ConditionTrue:
			return fmt.Errorf("%s: %s", published.Reason, published.Message)
		}
		return nil
	})
}

func (d *demo) client() (client.WithWatch, error) {
	types, err := manager.Scheme()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(d.controlPlane.Config(), client.Options{Scheme: types})
}

// showRings prints what "kubectl get hashrings" prints: the API server makes the table.
func (d *demo) showRings(ctx context.Context) error {
	say("kubectl get hashrings")
	config := rest.CopyConfig(d.controlPlane.Config())
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return err
	}
	table := &metav1.Table{}
	raw, err := c.Get().Namespace(namespace).Resource("hashrings").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(raw, table); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, &out); err != nil {
		return err
	}
	fmt.Print(out.String())
	return nil
}
