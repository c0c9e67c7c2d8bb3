// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
)

// defaultCatalogNamespace is where config/default has the operator.
const defaultCatalogNamespace = "ringwright-system"

// catalogQPS is how many requests are made in a second. The five of client-go would take minutes for a thousand rings.
const catalogQPS = 50

const catalogLong = `Print the catalog of a cluster: every ring that is published there and every
WeightPolicy, what is left of those that are gone and until when, and the copies
that the operator has taken of the catalog.

With --at it is one of those copies, named in full or by its time. "catalog
restore" brings rings back to what a copy says. Weights come back with "weights
rollback", and those of a WeightPolicy that is gone when it is made again.`

const catalogExample = `  # Every ring of the cluster
  kubectl hashring catalog

  # What was published when a copy was taken, in one namespace
  kubectl hashring catalog --at 20260301t120000z -n cdn

  # The digest of every ring
  kubectl hashring catalog -o json | jq -r '.rings[] | "\(.namespace)/\(.name) \(.digest)"'`

// CatalogReport is what "catalog" prints.
type CatalogReport struct {
	// Source is the ConfigMap that it was read from.
	Source string `json:"source"`
	catalog.Catalog
	// Copies are the names of the copies, the newest first.
	Copies []string `json:"copies"`
}

// catalogFlags say which catalog.
type catalogFlags struct {
	config    *genericclioptions.ConfigFlags
	namespace string
	at        string
}

func addCatalogFlags(cmd *cobra.Command) *catalogFlags {
	f := &catalogFlags{}
	f.config, _ = addConfigFlags(cmd)
	cmd.Flags().StringVar(&f.namespace, "catalog-namespace", defaultCatalogNamespace, "the namespace of the operator, where the catalog is")
	cmd.Flags().StringVar(&f.at, "at", "", "a copy of the catalog, by its name or its time: ringwright-catalog-20260301t120000z or 20260301t120000z")
	return f
}

// copyName returns the name of the ConfigMap of the copy that --at names.
func (f *catalogFlags) copyName(cmd *cobra.Command) (string, error) {
	name := f.at
	if !strings.HasPrefix(name, catalog.Name) {
		name = catalog.Name + "-" + name
	}
	if _, ok := catalog.CopyTime(name); !ok {
		return "", usagef(cmd, "--at: %q is no copy of the catalog: it must be like 20260301t120000z", f.at)
	}
	return name, nil
}

func (f *catalogFlags) client() (client.Client, error) {
	config, err := f.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = catalogQPS, 2*catalogQPS
	return newClient(config)
}

type catalogOptions struct {
	streams genericiooptions.IOStreams
	flags   *catalogFlags
	output  *formatFlag
}

func newCatalogCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "catalog",
		Short:   "Print every ring of a cluster, or restore what was published",
		Long:    catalogLong,
		Example: catalogExample,
		Args:    noArguments,
	}
	o := &catalogOptions{streams: streams, flags: addCatalogFlags(cmd)}
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		name := catalog.Name
		if cmd.Flags().Changed("at") {
			var err error
			if name, err = o.flags.copyName(cmd); err != nil {
				return err
			}
		}
		c, err := o.flags.client()
		if err != nil {
			return err
		}
		only := "" // The catalog is of the cluster, whatever namespace the context has.
		if cmd.Flags().Changed("namespace") {
			only = *o.flags.config.Namespace
		}
		return o.run(cmd.Context(), c, name, only)
	}
	cmd.AddCommand(newCatalogRestoreCommand(streams))
	return cmd
}

// run prints the catalog of that name, of one namespace where one is given.
func (o *catalogOptions) run(ctx context.Context, c client.Client, name, only string) error {
	content, err := readCatalog(ctx, c, o.flags.namespace, name)
	if err != nil {
		return err
	}
	report := &CatalogReport{Source: fmt.Sprintf("ConfigMap %s/%s", o.flags.namespace, name), Catalog: inNamespace(content, only)}
	if report.Copies, err = listCatalogCopies(ctx, c, o.flags.namespace); err != nil {
		return err
	}
	return o.output.print(o.streams.Out, report, report.print)
}

// inNamespace leaves out what is in another namespace; "" leaves out nothing.
func inNamespace(c catalog.Catalog, namespace string) catalog.Catalog {
	if namespace == "" {
		return c
	}
	c.Rings = slices.DeleteFunc(c.Rings, func(r catalog.Ring) bool { return r.Namespace != namespace })
	c.WeightPolicies = slices.DeleteFunc(c.WeightPolicies, func(p catalog.WeightPolicy) bool { return p.Namespace != namespace })
	c.WeightTombstones = slices.DeleteFunc(c.WeightTombstones, func(t catalog.WeightTombstone) bool { return t.Namespace != namespace })
	c.Tombstones = slices.DeleteFunc(c.Tombstones, func(t catalog.Tombstone) bool { return t.Namespace != namespace })
	return c
}

func readCatalog(ctx context.Context, c client.Client, namespace, name string) (catalog.Catalog, error) {
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm)
	if apierrors.IsNotFound(err) {
		return catalog.Catalog{}, fmt.Errorf("ConfigMap %s/%s does not exist: --catalog-namespace must be the namespace of the operator, and --at a copy that it keeps", namespace, name)
	}
	if err != nil {
		return catalog.Catalog{}, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, name, err)
	}
	content, err := catalog.Payload{Data: cm.Data, BinaryData: cm.BinaryData}.Unpack()
	if err != nil {
		return catalog.Catalog{}, fmt.Errorf("ConfigMap %s/%s: %w", namespace, name, err)
	}
	return content, nil
}

// listCatalogCopies returns the names of the copies, the newest first.
func listCatalogCopies(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelCatalog: v1alpha1.CatalogCopy}); err != nil {
		return nil, fmt.Errorf("listing the copies of the catalog: %w", err)
	}
	names := []string{}
	for _, item := range list.Items {
		if _, ok := catalog.CopyTime(item.Name); ok {
			names = append(names, item.Name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}
