// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const verifyLong = `Check that what is published is what it should be.

For a snapshot: it is in canonical form, and building its backends again gives the
same bytes. For a directory also: routing.json is canonical, names the snapshot that
is there, and gives an address to every backend; the other slot holds the marker of
an empty slot, or a ring; chunks that are not needed are empty. For the cluster also:
annotations and the status of the HashRing agree with the bytes. With -f also: this
manifest gives the same bytes.

Prints a line for each check. The exit code is 1 when one of them fails.`

const verifyExample = `  # What the operator published
  kubectl hashring verify edge-cache -n cdn

  # Does the manifest in the repository give what is published?
  kubectl hashring verify edge-cache -n cdn -f ring.yaml

  # A mounted volume
  kubectl hashring verify --dir /etc/ring`

type verifyOptions struct {
	streams  genericiooptions.IOStreams
	source   *sourceFlags
	output   *formatFlag
	manifest manifestRef
}

func newVerifyCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "verify (RING | --dir DIR | --snapshot FILE) [-f FILE]",
		Short:   "Check that what is published is what it should be",
		Long:    verifyLong,
		Example: verifyExample,
	}
	o := &verifyOptions{streams: streams}
	o.source = addSourceFlags(cmd)
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	cmd.Flags().StringVarP(&o.manifest.file, "filename", "f", "", "manifest that should give the same bytes, - for the standard input")
	cmd.Flags().StringVar(&o.manifest.name, "name", "", "which HashRing of the manifest, where the source does not tell")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.manifest.name != "" && o.manifest.file == "" {
			return usagef(cmd, "--name chooses a HashRing of a manifest: it needs -f")
		}
		src, err := o.source.chooseOnly(cmd, args)
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), src)
	}
	return cmd
}

func (o *verifyOptions) run(ctx context.Context, src source) error {
	p, err := src.read(ctx, everything)
	if err != nil {
		return err
	}
	v := verify(p)
	if o.manifest.file != "" {
		if err := o.compareManifest(ctx, v); err != nil {
			return err
		}
	}
	failed := v.report.failed()
	v.report.OK = failed == 0
	if err := o.output.print(o.streams.Out, v.report, v.report.print); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, plural(len(v.report.Checks), "check", "checks"))
	}
	return nil
}

// compareManifest loads the manifest of the ring that was verified, and checks it against that.
func (o *verifyOptions) compareManifest(ctx context.Context, v *verification) error {
	ref := o.manifest
	if v.file != nil {
		namespace, name, _ := strings.Cut(v.file.Ring, "/")
		if ref.name != "" && ref.name != name {
			return fmt.Errorf("--name is %q, the published ring is %q", ref.name, name)
		}
		ref.namespace, ref.name = namespace, name
	}
	hashRing, err := ref.load(ctx, o.streams.In)
	var invalid *manifestError
	if errors.As(err, &invalid) {
		v.report.check(ref.file, "the API server would accept it", invalid)
		return nil
	}
	if err != nil {
		return err
	}
	v.checkManifest(ref.file, hashRing)
	return nil
}
