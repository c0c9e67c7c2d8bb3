// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/weighthistory"
)

const weightsHistoryLong = `List the weights of a WeightPolicy that are recorded, the oldest first: those that
"weights rollback" goes back to. They are kept in ControllerRevisions of the policy's
namespace.

It takes permission to get WeightPolicies and to list ControllerRevisions.`

const weightsHistoryExample = `  # What was served when, and how well did it balance?
  kubectl hashring weights history checkout -n shop`

// WeightsHistoryReport is what "weights history" prints.
type WeightsHistoryReport struct {
	// Policy is namespace and name of the WeightPolicy.
	Policy string `json:"policy"`
	// Version is what is served now, Pinned the revision that the policy is pinned to; absent where there is none.
	Version int64 `json:"version,omitempty"`
	Pinned  int64 `json:"pinned,omitempty"`
	// Records are those that are kept, in ascending order.
	Records []WeightsRecord `json:"records"`
	// Notes are what else matters, as sentences.
	Notes []string `json:"notes,omitempty"`
}

// WeightsRecord is one record.
type WeightsRecord struct {
	Revision int64 `json:"revision"`
	Version  int64 `json:"version"`
	// At is when it was computed, in the form of RFC 3339 and UTC.
	At             string `json:"at,omitempty"`
	MaxOverAverage string `json:"maxOverAverage,omitempty"`
	Endpoints      int    `json:"endpoints"`
	Reason         string `json:"reason,omitempty"`
	Holder         string `json:"holder,omitempty"`
	// Served says that it is what is served now, Pinned that the policy is pinned to it.
	Served bool `json:"served,omitempty"`
	Pinned bool `json:"pinned,omitempty"`
	// Problem says why it cannot be read.
	Problem string `json:"problem,omitempty"`

	record weighthistory.Record
}

type weightsHistoryOptions struct {
	streams genericiooptions.IOStreams
	output  *formatFlag
	config  *genericclioptions.ConfigFlags
}

func newWeightsHistoryCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &weightsHistoryOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "history NAME",
		Short:   "List the recorded weights of a policy",
		Long:    weightsHistoryLong,
		Example: weightsHistoryExample,
		Args:    onePolicy,
	}
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		live, err := newLivePolicy(o.config, args[0])
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), live)
	}
	return cmd
}

func (o *weightsHistoryOptions) run(ctx context.Context, live livePolicy) error {
	policy, err := live.get(ctx)
	if err != nil {
		return err
	}
	report, err := live.history(ctx, policy)
	if err != nil {
		return err
	}
	return o.output.print(o.streams.Out, report, report.print)
}

// history reads the records of a policy.
func (l livePolicy) history(ctx context.Context, policy *v1alpha1.WeightPolicy) (*WeightsHistoryReport, error) {
	report := &WeightsHistoryReport{Policy: l.namespace + "/" + l.name, Records: []WeightsRecord{}}
	if w := policy.Status.Weights; w != nil {
		report.Version = w.Version
	}
	pin := policy.Annotations[v1alpha1.AnnotationPinnedWeights]
	var err error
	if report.Pinned, err = strconv.ParseInt(cmp.Or(pin, "0"), 10, 64); err != nil {
		report.Notes = append(report.Notes, fmt.Sprintf("annotation %s is %q, and must be the number of a revision", v1alpha1.AnnotationPinnedWeights, pin))
	}
	list := &appsv1.ControllerRevisionList{}
	for first := true; first || list.Continue != ""; first = false {
		err := l.client.List(ctx, list, client.InNamespace(l.namespace), client.Limit(recordPage), client.Continue(list.Continue),
			client.MatchingLabels{v1alpha1.LabelWeightPolicy: l.name})
		if err != nil {
			return nil, fmt.Errorf("listing the ControllerRevisions of %s: %w", l, err)
		}
		for i := range list.Items {
			report.add(&list.Items[i])
		}
	}
	slices.SortFunc(report.Records, func(a, b WeightsRecord) int { return cmp.Compare(a.Revision, b.Revision) })
	if report.Pinned > 0 && report.find(report.Pinned) == nil {
		report.Notes = append(report.Notes, fmt.Sprintf("the policy is pinned to revision %d, which is not kept", report.Pinned))
	}
	return report, nil
}

func (r *WeightsHistoryReport) add(revision *appsv1.ControllerRevision) {
	w := WeightsRecord{Revision: revision.Revision, Pinned: revision.Revision == r.Pinned}
	record, err := weighthistory.Decode(revision.Data)
	if err != nil {
		w.Problem = fmt.Sprintf("ControllerRevision %s: %v", revision.Name, err)
	} else {
		w.record, w.Version, w.At, w.MaxOverAverage = record, record.Version, rfc3339(record.At), record.MaxOverAverage
		w.Endpoints, w.Reason, w.Holder, w.Served = len(record.Weights), record.Reason, record.Holder, record.Version == r.Version
	}
	r.Records = append(r.Records, w)
}

// find returns the record of a revision; nil where it is not kept.
func (r *WeightsHistoryReport) find(revision int64) *WeightsRecord {
	for i := range r.Records {
		if r.Records[i].Revision == revision {
			return &r.Records[i]
		}
	}
	return nil
}

// kept lists the revisions that can be gone back to.
func (r *WeightsHistoryReport) kept() string {
	var list []string
	for _, w := range r.Records {
		if w.Problem == "" {
			list = append(list, strconv.FormatInt(w.Revision, 10))
		}
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

func (r *WeightsHistoryReport) print(out io.Writer) {
	notes := r.Notes
	if len(r.Records) == 0 {
		printf(out, "No weights of WeightPolicy %s are recorded.\n", r.Policy)
	} else {
		rows(out, func(w io.Writer) {
			printf(w, "REVISION\tVERSION\tAT\tMAX/AVG\tENDPOINTS\tREASON\tHOLDER\tSTATE\n")
			for _, record := range r.Records {
				printf(w, "%s\n", strings.Join(record.cells(), "\t"))
				if record.Problem != "" {
					notes = append(notes, record.Problem)
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

func (w WeightsRecord) cells() []string {
	var state []string
	if w.Served {
		state = append(state, "served")
	}
	if w.Pinned {
		state = append(state, "pinned")
	}
	return []string{
		strconv.FormatInt(w.Revision, 10), numberOrDash(w.Version), dash(w.At), dash(w.MaxOverAverage), numberOrDash(int64(w.Endpoints)),
		dash(oneLine(w.Reason)), dash(oneLine(w.Holder)), dash(strings.Join(state, ", ")),
	}
}

// oneLine is text in a table that somebody else wrote.
func oneLine(text string) string {
	if text == "" {
		return ""
	}
	return printable([]byte(text))
}
