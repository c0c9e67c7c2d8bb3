// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const weightsExplainLong = `Say why a WeightPolicy does not balance: each condition that is not as it should be
with what to do about it, the sources of its reports, and the endpoints that keep
it. With ENDPOINT, the name, address or ID of one: why it has the weight that it has,
and what happens to it next.

It takes permission to get and list WeightPolicies and to list WeightSets, and with a
target of kind HashRing to get HashRings.`

const weightsExplainExample = `  # Why does it not balance?
  kubectl hashring weights explain checkout -n shop

  # Why has this pod so little weight?
  kubectl hashring weights explain checkout checkout-7d4f-x2x9k -n shop`

// WeightsExplainReport is what "weights explain" prints.
type WeightsExplainReport struct {
	// Policy is namespace and name of the WeightPolicy.
	Policy string `json:"policy"`
	// Summary is how well it balances, as sentences.
	Summary []string `json:"summary"`
	// Findings are the conditions that are not as they should be.
	Findings []WeightFinding `json:"findings"`
	// Sources and Endpoints say, as sentences, what comes from the sources, and which endpoints keep it; absent with Endpoint.
	Sources   []string `json:"sources,omitempty"`
	Endpoints []string `json:"endpoints,omitempty"`
	// Endpoint is the one that was asked about, Weight why it has its weight.
	Endpoint *EndpointReport `json:"endpoint,omitempty"`
	Weight   []string        `json:"weight,omitempty"`
	// Notes are what else matters, as sentences.
	Notes []string `json:"notes,omitempty"`
}

// WeightFinding is a condition that is not as it should be.
type WeightFinding struct {
	Condition string `json:"condition"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
	Since     string `json:"since"`
	// Advice is what to do, Docs where it is explained.
	Advice string `json:"advice,omitempty"`
	Docs   string `json:"docs,omitempty"`
}

type weightsExplainOptions struct {
	streams genericiooptions.IOStreams
	output  *formatFlag
	config  *genericclioptions.ConfigFlags
}

func newWeightsExplainCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &weightsExplainOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "explain NAME [ENDPOINT]",
		Short:   "Say why a policy does not balance, or why an endpoint has its weight",
		Long:    weightsExplainLong,
		Example: weightsExplainExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				args = args[:1]
			}
			return onePolicy(cmd, args)
		},
	}
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		live, err := newLivePolicy(o.config, args[0])
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), live, strings.Join(args[1:], ""))
	}
	return cmd
}

func (o *weightsExplainOptions) run(ctx context.Context, live livePolicy, endpoint string) error {
	policy, err := live.get(ctx)
	if err != nil {
		return err
	}
	served, err := live.weights(ctx)
	if err != nil {
		return err
	}
	status := reportOf(policy, served, live.now())
	report := &WeightsExplainReport{Policy: live.namespace + "/" + live.name, Summary: summarizeWeights(status), Findings: []WeightFinding{}, Notes: status.Notes}
	for _, c := range policy.Status.Conditions {
		if finding, ok := findingOf(c); ok {
			report.Findings = append(report.Findings, finding)
		}
	}
	if endpoint == "" {
		report.Sources, report.Endpoints = explainSources(status), explainEndpoints(status)
		report.Notes = append(report.Notes, live.ringNotes(ctx, policy)...)
	} else if err := report.explainEndpoint(policy, served, status, endpoint, live); err != nil {
		return err
	}
	return o.output.print(o.streams.Out, report, report.print)
}

// summarizeWeights says how well a policy balances.
func summarizeWeights(r *PolicyReport) []string {
	if r.MaxOverAverage == "" {
		return []string{fmt.Sprintf("It balances %s; its load has not been measured yet.", r.Target)}
	}
	list := []string{fmt.Sprintf("It balances %s: the busiest endpoint uses %s of the mean.", r.Target, r.MaxOverAverage)}
	if r.NoiseFloor != "" {
		list = append(list, fmt.Sprintf("Chance alone would make that %s, since requests come by chance: less cannot be had.", r.NoiseFloor))
	}
	if r.Predicted != "" && r.Rollout != "100%" {
		list = append(list, fmt.Sprintf("With all of the computed weights it would be %s; the rollout serves %s of them.", r.Predicted, dash(r.Rollout)))
	}
	return list
}

// findingOf returns what is to be said about a condition; ok is false where it is as it should be.
func findingOf(c metav1.Condition) (finding WeightFinding, ok bool) {
	advice, docs := adviceFor(c.Reason)
	stalled := c.Type == string(v1alpha1.ConditionReconciling) || c.Type == string(v1alpha1.ConditionStalled) // They repeat Ready.
	if stalled || c.Status == metav1.ConditionTrue && advice == "" {
		return finding, false
	}
	return WeightFinding{
		Condition: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: rfc3339(c.LastTransitionTime.Time),
		Advice: advice, Docs: docs,
	}, true
}

// explainSources says what comes from each source.
func explainSources(r *PolicyReport) []string {
	var list []string
	for _, s := range r.Sources {
		list = append(list, fmt.Sprintf("%s has fresh reports of %s", s.Type, sourceText(s)))
	}
	return list
}

// explainEndpoints counts the endpoints that are not balanced, and names some.
func explainEndpoints(r *PolicyReport) []string {
	var list []string
	for _, state := range []v1alpha1.EndpointState{
		v1alpha1.EndpointGuarded, v1alpha1.EndpointClamped, v1alpha1.EndpointSilent, v1alpha1.EndpointCold, v1alpha1.EndpointNotReady,
	} {
		var names []string
		for _, e := range r.Endpoints {
			if e.State == string(state) {
				names = append(names, e.called())
			}
		}
		if len(names) > 0 {
			list = append(list, fmt.Sprintf("%s %s: %s", plural(len(names), "is", "are"), stateTexts[state], clip(names, maxSuggested)))
		}
	}
	return list
}

// stateTexts say what a state means.
var stateTexts = map[v1alpha1.EndpointState]string{
	v1alpha1.EndpointGuarded:  "Guarded, because more requests fail or wait there than elsewhere",
	v1alpha1.EndpointClamped:  "Clamped, at the least or the largest weight",
	v1alpha1.EndpointSilent:   "Silent, without a fresh report",
	v1alpha1.EndpointCold:     "Cold, new and without a report yet",
	v1alpha1.EndpointNotReady: "NotReady",
}

// ringNotes say whether the HashRing has the weights as factors.
func (l livePolicy) ringNotes(ctx context.Context, policy *v1alpha1.WeightPolicy) []string {
	if policy.Spec.TargetRef.Kind != v1alpha1.TargetHashRing {
		return nil
	}
	ring := &v1alpha1.HashRing{}
	key := client.ObjectKey{Namespace: l.namespace, Name: policy.Spec.TargetRef.Name}
	if err := l.client.Get(ctx, key, ring); err != nil {
		return []string{fmt.Sprintf("whether HashRing %s has the weights cannot be told: %v", key.Name, err)}
	}
	var list []string
	switch load := ring.Status.LoadWeights; {
	case load == nil || load.Policy != l.name:
		list = append(list, fmt.Sprintf("HashRing %s has none of these weights yet", key.Name))
	case !load.Applied:
		list = append(list, fmt.Sprintf("HashRing %s knows version %d and has not published it yet: its condition Held or Published says why", key.Name, load.Version))
	default:
		list = append(list, fmt.Sprintf("HashRing %s has version %d as factors of its backends' weights", key.Name, load.Version))
	}
	if ring.Status.Migration != nil {
		list = append(list, fmt.Sprintf("RingMigration %s has the ring: its factors stay until that is over", ring.Status.Migration.Name))
	}
	for _, w := range ring.Status.Warnings {
		if w.Reason == v1alpha1.WarningCoarseWeights {
			list = append(list, string(w.Reason)+": "+w.Message)
		}
	}
	return list
}

func (r *WeightsExplainReport) print(out io.Writer) {
	printf(out, "WeightPolicy %s\n", r.Policy)
	for _, sentence := range r.Summary {
		printf(out, "  %s\n", sentence)
	}
	for _, f := range r.Findings {
		printf(out, "\n%s is %s since %s: %s\n", f.Condition, f.Status, f.Since, f.Reason)
		if f.Message != "" {
			printf(out, "  %s\n", printable([]byte(f.Message)))
		}
		if f.Advice != "" {
			printf(out, "  what to do: %s (%s)\n", f.Advice, f.Docs)
		}
	}
	r.printList(out, "sources", r.Sources)
	r.printList(out, "endpoints", r.Endpoints)
	if r.Endpoint != nil {
		r.printList(out, "endpoint "+r.Endpoint.called(), r.Weight)
	}
	if len(r.Findings) == 0 && r.Endpoint == nil {
		printf(out, "\nAll conditions are as they should be.\n")
	}
	for _, note := range r.Notes {
		printf(out, "\nnote: %s\n", note)
	}
}

func (r *WeightsExplainReport) printList(out io.Writer, title string, list []string) {
	if len(list) == 0 {
		return
	}
	printf(out, "\n%s\n", title)
	for _, sentence := range list {
		printf(out, "  %s\n", sentence)
	}
}
