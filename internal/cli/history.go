// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/pkg/ring"
)

const historyLong = `List the revisions of a ring that are kept, the oldest first: those that "diff"
compares and that "rollback" goes back to. How many are kept, spec.historyLimit says.

A revision is kept in a ControllerRevision, from which its snapshot is built again,
byte for byte. Its digest is that of the snapshot; equal rings have equal digests.

It takes permission to list ControllerRevisions and to get HashRings.`

const historyExample = `  # The revisions of a ring
  kubectl hashring history edge-cache -n cdn

  # The number of the one before the last
  kubectl hashring history edge-cache -n cdn -o json | jq '.revisions[-2].revision'`

// HistoryReport is what "history" prints.
type HistoryReport struct {
	// Ring is namespace and name of the HashRing.
	Ring string `json:"ring"`
	// Published is the revision that the status says is published, Candidate the one that is published beside it while a migration
	// runs, Pinned spec.pinnedRevision; absent where there is none.
	Published int64 `json:"published,omitempty"`
	Candidate int64 `json:"candidate,omitempty"`
	Pinned    int64 `json:"pinned,omitempty"`
	// Revisions are those that are kept, in ascending order.
	Revisions []RevisionReport `json:"revisions"`
	// Notes are what else matters, as sentences.
	Notes []string `json:"notes,omitempty"`
}

// RevisionReport is a revision that is kept.
type RevisionReport struct {
	Revision int64 `json:"revision"`
	// Digest is that of the snapshot that was published.
	Digest string `json:"digest,omitempty"`
	// Algorithm, Identity, Backends and Points are those of its ring; absent with a Problem.
	Algorithm *AlgorithmReport `json:"algorithm,omitempty"`
	Identity  string           `json:"identity,omitempty"`
	Backends  *BackendCounts   `json:"backends,omitempty"`
	Points    int              `json:"points,omitempty"`
	// Created is when it was recorded, in the form of RFC 3339 and UTC.
	Created string `json:"created"`
	// Published says that it is what readers have, Candidate that they have it beside that, Pinned that spec.pinnedRevision names it.
	Published bool `json:"published,omitempty"`
	Candidate bool `json:"candidate,omitempty"`
	Pinned    bool `json:"pinned,omitempty"`
	// Problem says why what is kept cannot be read.
	Problem string `json:"problem,omitempty"`
}

type historyOptions struct {
	streams genericiooptions.IOStreams
	output  *formatFlag
	config  *genericclioptions.ConfigFlags
}

func newHistoryCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &historyOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "history RING",
		Short:   "List the revisions of a ring that are kept",
		Long:    historyLong,
		Example: historyExample,
		Args:    oneRing,
	}
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		live, err := newLiveRing(o.config, args[0])
		if err != nil {
			return err
		}
		report, err := live.history(cmd.Context())
		if err != nil {
			return err
		}
		return o.output.print(o.streams.Out, report, report.print)
	}
	return cmd
}

// history reports the revisions. Those of a HashRing that is gone are reported as well: it may be made again.
func (l liveRing) history(ctx context.Context) (*HistoryReport, error) {
	report := &HistoryReport{Ring: l.namespace + "/" + l.name, Revisions: []RevisionReport{}}
	hashRing, missing := l.get(ctx)
	if missing != nil && !apierrors.IsNotFound(missing) {
		return nil, missing
	}
	kept, err := l.revisions(ctx)
	switch {
	case err != nil:
		return nil, err
	case missing != nil && len(kept) == 0:
		return nil, missing
	case missing != nil:
		report.Notes = append(report.Notes, fmt.Sprintf("%s does not exist: this is what it left", l))
	default:
		if hashRing.Status.Active != nil {
			report.Published = hashRing.Status.Active.Revision
		}
		if c := hashRing.Status.Candidate; c != nil && c.Slot != "" {
			report.Candidate = c.Revision
		}
		if hashRing.Spec.PinnedRevision != nil {
			report.Pinned = *hashRing.Spec.PinnedRevision
		}
	}
	for _, k := range kept {
		report.add(k)
	}
	if pin := report.Pinned; pin > 0 && !slices.ContainsFunc(kept, func(k keptRevision) bool { return k.number == pin }) {
		report.Notes = append(report.Notes, fmt.Sprintf("spec.pinnedRevision is %d, which is not kept", pin))
	}
	return report, nil
}

func (r *HistoryReport) add(k keptRevision) {
	revision := RevisionReport{
		Revision: k.number, Digest: k.digest, Created: k.created.UTC().Format(time.RFC3339),
		Published: k.number == r.Published, Candidate: k.number == r.Candidate, Pinned: k.number == r.Pinned,
	}
	if k.problem != nil {
		revision.Problem = k.problem.Error()
	} else {
		algorithm := describeAlgorithm(k.config.Algorithm)
		revision.Algorithm, revision.Identity, revision.Points = &algorithm, k.config.Identity.String(), int(k.points)
		revision.Backends = countBackends(k.config.Backends)
	}
	r.Revisions = append(r.Revisions, revision)
}

func countBackends(backends []ring.Backend) *BackendCounts {
	counts := &BackendCounts{Total: len(backends)}
	for _, b := range backends {
		if b.Weight > 0 {
			counts.Placed++
		}
	}
	counts.Drained = counts.Total - counts.Placed
	return counts
}

func (r *HistoryReport) print(out io.Writer) {
	notes := r.Notes
	if len(r.Revisions) == 0 {
		printf(out, "No revision of HashRing %s is kept.\n", r.Ring)
	} else {
		rows(out, func(w io.Writer) {
			printf(w, "REVISION\tDIGEST\tALGORITHM\tBACKENDS\tPOINTS\tCREATED\tSTATE\n")
			for _, revision := range r.Revisions {
				printf(w, "%s\n", strings.Join(revision.cells(), "\t"))
				if revision.Problem != "" {
					notes = append(notes, revision.Problem)
				}
			}
		})
	}
	if len(notes) > 0 {
		printf(out, "\n")
	}
	for _, note := range notes {
		printf(out, "note: %s\n", note)
	}
}

func (r *RevisionReport) cells() []string {
	algorithm, backends, points := "-", "-", "-"
	if r.Problem == "" {
		algorithm = fmt.Sprintf("%s, %d points", r.Algorithm.Version, r.Algorithm.PointsPerWeight)
		backends, points = countText(*r.Backends), strconv.Itoa(r.Points)
	}
	var state []string
	if r.Published {
		state = append(state, "published")
	}
	if r.Candidate {
		state = append(state, "candidate")
	}
	if r.Pinned {
		state = append(state, "pinned")
	}
	return []string{
		strconv.FormatInt(r.Revision, 10), dash(shortDigest(r.Digest)), algorithm, backends, points, r.Created, dash(strings.Join(state, ", ")),
	}
}
