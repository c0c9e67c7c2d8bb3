// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

const planLong = `Say what would move if a manifest were applied: the exact share of the key space,
what each backend gains and loses, from whom to whom, and what becomes of size and
balance. Nothing is written.

The manifest goes through what the API server and the operator would do with it, as
in "build". It is compared with the ring that the cluster has published for the
HashRing of its namespace and name, with the factors that a WeightPolicy gives the
weights there, or with --from: a directory of published files,
a snapshot file, or an older manifest.

Without --features it is the ring of all backends, and the views of the features
and of the declared sets of features where something else moves than there.

Exit codes are those of kubectl diff: 0 nothing moves, whatever else changes; 1 keys
move, or the ring is the first one; above 1 an error: 2 the command line is wrong,
3 the plan could not be made, for example because the ring would not be published.`

const planExample = `  # What would applying this manifest move?
  kubectl hashring plan -f ring.yaml

  # Against the manifest of the main branch, without a cluster
  git show main:ring.yaml > old.yaml
  kubectl hashring plan -f ring.yaml --from old.yaml

  # In a script: go on only where no key moves
  kubectl hashring plan -f ring.yaml && kubectl apply --server-side -f ring.yaml

  # The 50 largest moves for readers that ask for a feature
  kubectl hashring plan -f ring.yaml --features eu --pairs 50`

// fromCluster is the value of --from for what the cluster has published.
const fromCluster = "cluster"

type planOptions struct {
	streams     genericiooptions.IOStreams
	manifest    manifestRef
	from        string
	show        movementFlags
	config      *genericclioptions.ConfigFlags
	configNames []string
}

func newPlanCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &planOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "plan -f FILE [--from PATH]",
		Short:   "Say what would move if a manifest were applied",
		Long:    planLong,
		Example: planExample,
		Args:    noArguments,
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.manifest.file, "filename", "f", "", "manifest of the HashRing, - for the standard input")
	flags.StringVar(&o.manifest.name, "name", "", "which HashRing of the manifest, where it has several")
	flags.StringVar(&o.from, "from", fromCluster, "what to compare with: cluster, or the path of a directory, a snapshot or a manifest")
	o.show.add(cmd, "plan for readers with these features")
	o.config, o.configNames = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(cmd); err != nil {
			return err
		}
		return movementCode(o.run(cmd.Context()))
	}
	return cmd
}

func (o *planOptions) check(cmd *cobra.Command) error {
	switch {
	case o.manifest.file == "":
		return usagef(cmd, "no manifest given: -f names the file, or - for the standard input")
	case o.from == "":
		return usagef(cmd, "--from is empty: it must be %s or a path", fromCluster)
	}
	if err := o.show.check(cmd); err != nil {
		return err
	}
	if cmd.Flags().Changed("namespace") {
		o.manifest.namespace = *o.config.Namespace
	}
	if o.from == fromCluster {
		return nil
	}
	for _, name := range o.configNames {
		if name != "namespace" && cmd.Flags().Changed(name) {
			return usagef(cmd, "--%s is for a cluster: it cannot be used with --from %s", name, o.from)
		}
	}
	return nil
}

// run prints the plan and says whether keys move.
func (o *planOptions) run(ctx context.Context) (bool, error) {
	if o.from == fromCluster {
		namespace, err := configNamespace(o.config)
		if err != nil {
			return false, err
		}
		o.manifest.fallback = namespace
	}
	hashRing, err := o.manifest.load(ctx, o.streams.In)
	if err != nil {
		return false, err
	}
	before, err := o.before(ctx, hashRing)
	if err != nil {
		return false, err
	}
	after, err := planned(hashRing, before)
	if err != nil {
		return false, err
	}
	return o.show.print(o.streams.Out, before, after)
}

// planSide is a ring before or after the change.
type planSide struct {
	// ring is nil where there is none yet.
	ring *ring.Ring
	// origin is how messages call it.
	origin string
	// name is namespace and name of the HashRing, "" where the source does not tell.
	name string
	// digest is that of the snapshot, bytes its length, encoding what it holds. The ring can have been opened from another
	// snapshot of the same.
	digest   string
	bytes    int
	encoding ring.Encoding
	// chunks is how many ConfigMaps the manifest allows; 0 before the change, where it matters no more.
	chunks int
	// warnings are those of the spec.
	warnings []v1alpha1.Warning
	// addresses are the dial addresses of named backends; nil where the source does not tell.
	addresses map[string]string
}

func newPlanSide(r *ring.Ring, origin string) *planSide {
	return &planSide{ring: r, origin: origin, digest: r.Digest(), bytes: len(r.Snapshot()), encoding: r.Encoding()}
}

// planned builds what the operator would publish for a HashRing after the ring of previous, which has none where there is none.
// V1 and V2 do not depend on it. Its weights have the factors that its status has. What turns out to be the same ring is not opened again, which for a recipe would build it.
func planned(hashRing *v1alpha1.HashRing, previous *planSide) (*planSide, error) {
	name := hashRing.Namespace + "/" + hashRing.Name
	desired, err := plan.BuildLoaded(hashRing.Spec, hashRing.Status.LoadWeights, previous.ring)
	if err != nil {
		return nil, fmt.Errorf("HashRing %s: %w", name, err)
	}
	built := desired.Ring
	side := &planSide{
		origin: name, name: name, addresses: desired.Addresses, chunks: desired.Chunks, warnings: desired.Warnings,
		digest: built.Digest(), bytes: len(built.Snapshot()), encoding: ring.EncodingPoints,
	}
	if built.Encoding() == v1alpha1.EncodingRecipe {
		side.encoding = ring.EncodingRecipe
	}
	switch {
	case previous.ring == nil:
	case side.digest == previous.digest,
		side.encoding == ring.EncodingRecipe && bytes.Equal(built.Recipe(), previous.ring.Recipe()):
		side.ring = previous.ring
		return side, nil
	}
	if side.ring, err = built.Open(); err != nil {
		return nil, fmt.Errorf("HashRing %s: %w", name, err)
	}
	return side, nil
}

// before returns the ring that is there now.
func (o *planOptions) before(ctx context.Context, hashRing *v1alpha1.HashRing) (*planSide, error) {
	if o.from == fromCluster {
		src, err := newCluster(o.config, hashRing.Namespace, hashRing.Name)
		if err != nil {
			return nil, err
		}
		side, err := readSide(ctx, src)
		if err != nil {
			return nil, err
		}
		return side, src.load(ctx, hashRing)
	}
	info, err := os.Stat(o.from)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	if info.IsDir() {
		return readSide(ctx, directory{o.from})
	}
	isSnapshot, err := looksLikeSnapshot(o.from)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	if isSnapshot {
		return o.beforeOfSnapshot(ctx)
	}
	older, err := manifestRef{file: o.from, name: hashRing.Name, namespace: hashRing.Namespace}.load(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	side, err := planned(older, &planSide{})
	if err != nil {
		return nil, fmt.Errorf("--from %s: %w", o.from, err)
	}
	side.origin, side.chunks = "manifest "+o.from, 0
	return side, nil
}

// beforeOfSnapshot reads a snapshot file. It does not say of which HashRing it is, but the routing file of its directory may.
func (o *planOptions) beforeOfSnapshot(ctx context.Context) (*planSide, error) {
	side, err := readSide(ctx, snapshotFile{o.from})
	if err != nil {
		return nil, err
	}
	if data, err := routing.ReadFile(filepath.Join(filepath.Dir(o.from), routing.FileName), plan.ChunkBytes); err == nil {
		if file, err := routing.Parse(data); err == nil && file.Stable.Digest == side.digest {
			side.name = file.Ring
		}
	}
	return side, nil
}

// readSide reads what is published. That nothing is, is no error: the plan is then for the first ring.
func readSide(ctx context.Context, src source) (*planSide, error) {
	p, err := src.read(ctx, stableRing)
	if err != nil {
		return nil, err
	}
	from, err := p.open()
	var unpublished *unpublishedError
	if errors.As(err, &unpublished) {
		return &planSide{origin: "nothing: " + unpublished.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	side := newPlanSide(from.ring, from.origin)
	side.name = from.name()
	if from.revision > 0 {
		side.origin += fmt.Sprintf(", revision %d", from.revision)
	}
	if from.file != nil {
		side.addresses = from.file.Addresses
	}
	return side, nil
}

// looksLikeSnapshot tells a snapshot from a manifest by its first byte, which no text begins with.
func looksLikeSnapshot(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	first := make([]byte, 1)
	if _, err := io.ReadFull(file, first); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return bytes.HasPrefix(ring.EmptySlot(), first), nil
}
