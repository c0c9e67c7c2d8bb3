// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

const migrationTraceLong = `Say where keys go in the split that is published, and why: the bucket of each key, the
share of the datacenter, the owner on the stable ring and on the candidate, the
decision, and from which share on it would be another one. It decides as every reader
does: a backend that is down is passed over, and where the candidate has no backend
with the features, the stable ring answers.

The split comes from the ConfigMaps of a HashRing, which is named itself or by its
RingMigration, or from --dir. Without --datacenter it is that of a consumer that was
told none.

It takes permission to get ConfigMaps, and for the name of a RingMigration to get
those.`

const migrationTraceExample = `  # Where does a key go in ams01?
  kubectl hashring migration trace edge-cache -n cdn --key /images/logo.png --datacenter ams01

  # A file of keys, one a line, against a mounted volume
  kubectl hashring migration trace --dir /etc/ring --key-file keys.txt --datacenter ams01 -o json`

type migrationTraceOptions struct {
	streams    genericiooptions.IOStreams
	source     *sourceFlags
	output     *formatFlag
	keys       []string
	keyFile    string
	hex        bool
	datacenter string
	features   []string
}

func newMigrationTraceCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &migrationTraceOptions{streams: streams, source: &sourceFlags{}}
	cmd := &cobra.Command{
		Use:     "trace (RING | NAME | --dir DIR) (--key KEY... | --key-file FILE)",
		Short:   "Say where keys go in the published split, and why",
		Long:    migrationTraceLong,
		Example: migrationTraceExample,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.source.dir, "dir", "", "read the rings from a directory: a mounted volume")
	flags.StringArrayVar(&o.keys, "key", nil, "a key; can be given several times")
	flags.StringVar(&o.keyFile, "key-file", "", "file of keys, one a line, - for the standard input")
	flags.BoolVar(&o.hex, "hex", false, "keys are given and printed in hex")
	flags.StringVar(&o.datacenter, "datacenter", "", "datacenter of the consumer")
	flags.StringSliceVar(&o.features, "features", nil, "take only backends that have all of these features")
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	o.source.config, o.source.configNames = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(cmd); err != nil {
			return err
		}
		src, err := o.source.chooseOnly(cmd, args)
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), src)
	}
	return cmd
}

func (o *migrationTraceOptions) check(cmd *cobra.Command) error {
	switch {
	case len(o.keys) > 0 && o.keyFile != "":
		return usagef(cmd, "--key and --key-file cannot be used together")
	case len(o.keys) == 0 && o.keyFile == "":
		return usagef(cmd, "no key given: --key gives one, --key-file a file of them")
	case o.datacenter == routing.AnyDatacenter || len(o.datacenter) > routing.MaxDatacenterBytes:
		return usagef(cmd, "--datacenter is %.80q, it must be the name of a datacenter, of at most %d bytes", o.datacenter, routing.MaxDatacenterBytes)
	}
	return nil
}

func (o *migrationTraceOptions) run(ctx context.Context, src source) error {
	p, err := o.read(ctx, src)
	if err != nil {
		return err
	}
	pair, err := openPair(p, o.datacenter, o.features)
	if err != nil {
		return err
	}
	report := pair.report()
	keys, err := o.keyReader()
	if err != nil {
		return err
	}
	for {
		key, err := keys.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		traced, err := pair.trace(key, o.hex)
		if err != nil {
			return err
		}
		report.Keys = append(report.Keys, traced)
	}
	return o.output.print(o.streams.Out, report, report.print)
}

func (o *migrationTraceOptions) keyReader() (*keyReader, error) {
	switch o.keyFile {
	case "":
		return &keyReader{args: o.keys, hex: o.hex}, nil
	case "-":
		return newKeyReader([]string{"-"}, o.streams.In, o.hex), nil
	}
	data, err := os.ReadFile(o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	return newKeyReader([]string{"-"}, strings.NewReader(string(data)), o.hex), nil
}

// read reads both rings of a source. What has no published ring can be the name of a RingMigration.
func (o *migrationTraceOptions) read(ctx context.Context, src source) (*publication, error) {
	p, err := src.read(ctx, bothRings)
	if err != nil {
		return nil, err
	}
	named, inCluster := src.(cluster)
	if !inCluster || !errors.As(p.routing.err, new(*unpublishedError)) {
		return p, nil
	}
	migration := &v1alpha1.RingMigration{}
	err = named.reader.Get(ctx, client.ObjectKey{Namespace: named.namespace, Name: named.name}, migration)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w; nor is there a RingMigration of that name", p.routing.err)
	case err != nil:
		return nil, fmt.Errorf("%w; whether it is the name of a RingMigration cannot be told: %w", p.routing.err, err)
	}
	rings := migrationView{migration}.ringNames()
	if len(rings) != 1 {
		return nil, fmt.Errorf("RingMigration %s/%s has %s: name the one to trace in: %s",
			named.namespace, named.name, plural(len(rings), "HashRing", "HashRings"), strings.Join(rings, ", "))
	}
	named.name = rings[0]
	return named.read(ctx, bothRings)
}
