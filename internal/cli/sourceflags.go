// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// sourceFlags say where a ring is read from: a cluster, unless --dir or --snapshot is given.
type sourceFlags struct {
	dir, snapshot string
	config        *genericclioptions.ConfigFlags
	// configNames are the flags of config: they make no sense with a source that is no cluster.
	configNames []string
}

// shownConfigFlags are those that are used every day. The others of kubectl work as well, but would fill the help.
var shownConfigFlags = map[string]bool{"kubeconfig": true, "context": true, "namespace": true}

func addSourceFlags(cmd *cobra.Command) *sourceFlags {
	f := &sourceFlags{}
	cmd.Flags().StringVar(&f.dir, "dir", "", "read the ring from a directory: a mounted volume, or what \"build\" wrote")
	cmd.Flags().StringVar(&f.snapshot, "snapshot", "", "read the ring from a snapshot file")
	f.config, f.configNames = addConfigFlags(cmd)
	return f
}

// addConfigFlags adds the flags of kubectl that choose a cluster and a namespace, and returns their names.
func addConfigFlags(cmd *cobra.Command) (config *genericclioptions.ConfigFlags, names []string) {
	config = genericclioptions.NewConfigFlags(true)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(flags)
	flags.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = !shownConfigFlags[flag.Name]
		names = append(names, flag.Name)
	})
	cmd.Flags().AddFlagSet(flags)
	return config, names
}

// choose returns the source that the flags and arguments name, and the arguments that are not part of its name.
func (f *sourceFlags) choose(cmd *cobra.Command, args []string) (source, []string, error) {
	dir, snapshot := cmd.Flags().Changed("dir"), cmd.Flags().Changed("snapshot")
	switch {
	case dir && snapshot:
		return nil, nil, usagef(cmd, "--dir and --snapshot cannot be used together")
	case dir:
		return directory{f.dir}, args, f.checkOffline(cmd, "dir", f.dir)
	case snapshot:
		return snapshotFile{f.snapshot}, args, f.checkOffline(cmd, "snapshot", f.snapshot)
	default:
		return f.chooseCluster(cmd, args)
	}
}

// checkOffline refuses flags that say something about a cluster, and an empty path, which is what a misspelt variable of
// the shell gives.
func (f *sourceFlags) checkOffline(cmd *cobra.Command, flag, path string) error {
	for _, name := range f.configNames {
		if cmd.Flags().Changed(name) {
			return usagef(cmd, "--%s is for a cluster: it cannot be used with --%s", name, flag)
		}
	}
	if path == "" {
		return usagef(cmd, "--%s is empty: it must be a path", flag)
	}
	return nil
}

func (f *sourceFlags) chooseCluster(cmd *cobra.Command, args []string) (source, []string, error) {
	if len(args) == 0 {
		return nil, nil, usagef(cmd, "no ring given: name a HashRing, or use --dir or --snapshot")
	}
	namespace, err := configNamespace(f.config)
	if err != nil {
		return nil, nil, err
	}
	src, err := newCluster(f.config, namespace, args[0])
	return src, args[1:], err
}

// configNamespace returns the namespace that flags and kubeconfig choose.
func configNamespace(flags *genericclioptions.ConfigFlags) (string, error) {
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return namespace, nil
}

// newCluster returns the source of a ring in the cluster that flags and kubeconfig choose.
func newCluster(flags *genericclioptions.ConfigFlags, namespace, name string) (cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return cluster{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	reader, err := newReader(config)
	if err != nil {
		return cluster{}, err
	}
	return cluster{reader: reader, namespace: namespace, name: name, again: publicationTime}, nil
}

// chooseOnly is choose for a command that takes no further arguments.
func (f *sourceFlags) chooseOnly(cmd *cobra.Command, args []string) (source, error) {
	src, rest, err := f.choose(cmd, args)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, usagef(cmd, "unexpected argument %q", rest[0])
	}
	return src, nil
}
