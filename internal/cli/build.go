// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

const buildLong = `Do the operator's whole job without a cluster: read the manifest of one HashRing,
apply the defaults of its CRD, check it as the API server would, build the ring
and write ring-a.snap, ring-b.snap and routing.json into a directory, and with
spec.publication.chunks also ring-a.snap.1 and so on. The snapshot is the one that
the operator publishes, byte for byte. With V3 that depends on the ring before: the
operator takes the one that it has published, this command the one of the directory.

The files replace those of an earlier build of the same ring together, routing.json
last; its generation grows by one when something changed, and nothing is written
when nothing did. Files of another ring are replaced with --force only.

The manifest may hold other documents as well, and other HashRings when --name
chooses one.`

const buildExample = `  # Build a ring and look up a key in it
  kubectl hashring build -f ring.yaml -o out
  kubectl hashring lookup --dir out /images/logo.png

  # What GitOps would apply
  kustomize build overlays/prod | kubectl hashring build -f - --name edge-cache -o out`

// BuildReport is what "build" prints.
type BuildReport struct {
	// Ring is namespace and name of the HashRing.
	Ring string `json:"ring"`
	// Directory is where the files are, Outcome what happened to them.
	Directory string       `json:"directory"`
	Outcome   BuildOutcome `json:"outcome"`
	// Generation is that of routing.json.
	Generation int64 `json:"generation"`
	// Files are the files of the publication, sorted by name.
	Files    []FileReport `json:"files"`
	Snapshot RingReport   `json:"snapshot"`
}

// FileReport is a file that "build" is responsible for.
type FileReport struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	Digest string `json:"digest"`
	// Written says that this build wrote it; it is false where the file was there already.
	Written bool `json:"written"`
}

type buildOptions struct {
	streams  genericiooptions.IOStreams
	manifest manifestRef
	dir      string
	force    bool
	output   *formatFlag
}

func newBuildCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &buildOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "build -f FILE -o DIR",
		Short:   "Build the ring of a manifest into a directory, without a cluster",
		Long:    buildLong,
		Example: buildExample,
		Args:    noArguments,
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.manifest.file, "filename", "f", "", "manifest of the HashRing, - for the standard input")
	flags.StringVarP(&o.dir, "output-dir", "o", "", "directory for the files; created where needed")
	flags.StringVar(&o.manifest.name, "name", "", "which HashRing of the manifest, where it has several")
	flags.StringVarP(&o.manifest.namespace, "namespace", "n", "", "namespace of the HashRing where the manifest has none (default \"default\")")
	flags.BoolVar(&o.force, "force", false, "replace the files of another ring")
	o.output = addFormat(cmd, "", formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case o.manifest.file == "":
			return usagef(cmd, "no manifest given: -f names the file, or - for the standard input")
		case o.dir == "":
			return usagef(cmd, "no directory given: -o names where the files are written")
		case slices.Contains(o.output.allowed, format(o.dir)):
			// In kubectl -o is the format, so this is more likely a slip than a directory of that name.
			return usagef(cmd, "-o is the directory here, and %q a format: use --format %[1]s, or -o ./%[1]s for a directory", o.dir)
		}
		return o.run(cmd.Context())
	}
	return cmd
}

func (o *buildOptions) run(ctx context.Context) error {
	hashRing, err := o.manifest.load(ctx, o.streams.In)
	if err != nil {
		return err
	}
	report, err := o.build(hashRing)
	if err != nil {
		return err
	}
	return o.output.print(o.streams.Out, report, report.print)
}

func (o *buildOptions) build(hashRing *v1alpha1.HashRing) (*BuildReport, error) {
	ref := plan.Ref{Namespace: hashRing.Namespace, Name: hashRing.Name}
	dir, err := openOutputDir(o.dir, ref, o.force)
	if err != nil {
		return nil, err
	}
	desired, err := plan.BuildFrom(hashRing.Spec, dir.previous())
	if err != nil {
		return nil, fmt.Errorf("HashRing %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	publication, outcome, err := dir.plan(ref, desired)
	if err != nil {
		return nil, fmt.Errorf("HashRing %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	opened, err := desired.Ring.Open()
	if err != nil {
		return nil, fmt.Errorf("HashRing %s/%s: opening what was built: %w", ref.Namespace, ref.Name, err)
	}
	files := publication.Files()
	if err := dir.checkStray(files); err != nil && !o.force {
		return nil, err
	}
	written := dir.differing(publication)
	if err := dir.write(publication); err != nil {
		return nil, fmt.Errorf("writing to %s: %w", o.dir, err)
	}
	report := &BuildReport{
		Ring: ref.Namespace + "/" + ref.Name, Directory: o.dir, Outcome: outcome,
		Generation: publication.Generation, Snapshot: describeRing(opened),
	}
	report.Snapshot.Warnings = append(describeWarnings(desired.Warnings), report.Snapshot.Warnings...)
	for _, name := range slices.Sorted(slices.Values(publication.FileNames())) {
		report.Files = append(report.Files, FileReport{
			Name: name, Bytes: len(files[name]), Digest: ring.Digest(files[name]), Written: slices.Contains(written, name),
		})
	}
	return report, nil
}

func (r *BuildReport) print(out io.Writer) {
	printf(out, "HashRing %s: %s, generation %d\n", r.Ring, outcomeText[r.Outcome], r.Generation)
	rows(out, func(w io.Writer) {
		for _, f := range r.Files {
			state := "already there"
			if f.Written {
				state = "written"
			}
			printf(w, "  %s\t%d bytes\t%s\n", filepath.Join(r.Directory, f.Name), f.Bytes, state)
		}
	})
	printf(out, "\n")
	rows(out, r.Snapshot.header)
	printf(out, "\n")
	rows(out, func(w io.Writer) { r.Snapshot.Balance.table(w, "BALANCE") })
	if len(r.Snapshot.Warnings) > 0 {
		printf(out, "\n")
		printWarnings(out, r.Snapshot.Warnings)
	}
}

var outcomeText = map[BuildOutcome]string{
	BuildCreated: "built", BuildUpdated: "changed", BuildRestored: "restored", BuildUnchanged: "unchanged",
}
