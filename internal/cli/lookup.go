// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/pkg/ring"
)

// maxOwners is how many backends can be asked for: as many as a Go client gives.
const maxOwners = 64

const lookupLong = `Print the owner of each key and, with --owners, the backends after it: those that
would own the key if the ones before were gone, each once.

The ring comes from the ConfigMaps of the named HashRing, or from --dir or
--snapshot; then every argument is a key. With - as the only key, keys are read
from the standard input, one a line: raw bytes up to the line feed, at most 8192,
or twice as many hex digits.
An empty line is the empty key. With --hex keys are given and printed in hex.

-o tsv prints the key and then the dial address of each owner, tab-separated, in
the order in which the keys were given. Answers to keys from the standard input
are written as soon as no more input is waiting (-o table aligns 100 at a time).`

const lookupExample = `  # The owner of two keys, in the cluster
  kubectl hashring lookup edge-cache -n cdn /images/logo.png /index.html

  # The owner and two successors among the backends that have both features
  kubectl hashring lookup edge-cache -n cdn user-4711 --owners 3 --features eu,ssd

  # A file of keys against a mounted volume
  kubectl hashring lookup --dir /etc/ring -o tsv - < keys.txt

  # A binary key against a snapshot
  kubectl hashring lookup --snapshot out/ring-a.snap --hex 00ff10`

// Answer is what lookup prints for a key.
type Answer struct {
	// Key is the key as text; absent with --hex and where the key is not valid UTF-8.
	Key *string `json:"key,omitempty"`
	// KeyHex is the key in lower-case hex, where Key is absent.
	KeyHex *string `json:"keyHex,omitempty"`
	// Hash is the key's position on the ring.
	Hash uint32 `json:"keyHash"`
	// Owners are the owner and its successors: as many as were asked for, or as there are.
	Owners []Owner `json:"owners"`
}

// Owner is a backend in an Answer.
type Owner struct {
	// ID is the backend's identity in the snapshot.
	ID string `json:"id"`
	// Address is where it is dialled; absent for a snapshot of names, which does not hold it.
	Address string `json:"address,omitempty"`
	// Zone is where it runs; absent where that is not known.
	Zone string `json:"zone,omitempty"`
}

type lookupOptions struct {
	streams  genericiooptions.IOStreams
	source   *sourceFlags
	output   *formatFlag
	owners   int
	features []string
	hex      bool
}

func newLookupCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "lookup (RING | --dir DIR | --snapshot FILE) (KEY... | -)",
		Short:   "Print the owner of each key, and its successors",
		Long:    lookupLong,
		Example: lookupExample,
	}
	o := &lookupOptions{streams: streams}
	o.source = addSourceFlags(cmd)
	o.output = addFormat(cmd, "o", formatTable, formatTSV, formatJSON, formatYAML)
	cmd.Flags().IntVar(&o.owners, "owners", 1, "how many distinct backends to print for each key, 1 to 64")
	cmd.Flags().StringSliceVar(&o.features, "features", nil, "take only backends that have all of these features")
	cmd.Flags().BoolVar(&o.hex, "hex", false, "keys are given and printed in hex")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, keys, err := o.source.choose(cmd, args)
		if err == nil {
			err = o.validate(cmd, keys)
		}
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), src, keys)
	}
	return cmd
}

func (o *lookupOptions) validate(cmd *cobra.Command, keys []string) error {
	if o.owners < 1 || o.owners > maxOwners {
		return usagef(cmd, "--owners is %d, it must be 1 to %d", o.owners, maxOwners)
	}
	if len(keys) == 0 {
		return usagef(cmd, "no key given: pass keys as arguments, or - to read them from the standard input")
	}
	for _, key := range keys {
		if key == "-" && len(keys) > 1 {
			return usagef(cmd, "- reads the keys from the standard input, it cannot stand beside other keys (the key \"-\" is --hex 2d)")
		}
	}
	return nil
}

func (o *lookupOptions) run(ctx context.Context, src source, keys []string) error {
	p, err := src.read(ctx, stableRing)
	if err != nil {
		return err
	}
	ring, err := p.open()
	if err != nil {
		return err
	}
	view, err := ring.view(o.features)
	if err == nil {
		err = ring.answerable(view, o.features)
	}
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(o.streams.Out, 64<<10)
	reader := newKeyReader(keys, flushing{o.streams.In, out}, o.hex)
	err = o.answerAll(ctx, ring, view, reader, newAnswerWriter(out, o, ring))
	return first(err, out.Flush())
}

// answerAll answers key by key. What was answered before an error is printed.
func (o *lookupOptions) answerAll(ctx context.Context, from *opened, view *ring.View, keys *keyReader, out answerWriter) error {
	owners := make([]int, 0, o.owners)
	for ctx.Err() == nil {
		key, err := keys.next()
		if err == nil {
			hash := ring.Hash(key)
			owners = view.AppendOwners(owners[:0], hash, o.owners, nil)
			err = out.write(lookedUp{key: key, where: keys.where, hash: hash, owners: owners})
		}
		if errors.Is(err, io.EOF) {
			return out.close()
		}
		if err != nil {
			return first(err, out.close())
		}
	}
	return ctx.Err()
}

// first returns the error that came first: after a failed write all others say the same again.
func first(err, next error) error {
	if err != nil {
		return err
	}
	return next
}
