// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// print writes all but the endpoints.
func (r *PolicyReport) print(out io.Writer, live livePolicy) {
	now := live.now()
	printf(out, "WeightPolicy %s/%s balances %s\n\n", r.Namespace, r.Name, r.Target)
	rows(out, func(w io.Writer) {
		printf(w, "max/avg\t%s\n", r.ratio())
		if r.Utilization != "" {
			printf(w, "utilisation\t%s on average%s\n", r.Utilization, r.measured(now))
		}
		if c := r.Counts; c != nil {
			printf(w, "endpoints\t%d, %d ready, %d reporting, %d cold, %d clamped, %d guarded\n", c.Total, c.Ready, c.Reporting, c.Cold, c.Clamped, c.Guarded)
		}
		for _, s := range r.Sources {
			printf(w, "source %s\t%s\n", s.Type, sourceText(s))
		}
		if r.RolloutNow != nil {
			printf(w, "rollout\t%s\n", rolloutText(r.RolloutNow, now))
		}
		if p := r.Weights; p != nil {
			printf(w, "weights\t%s\n", weightsText(p, now))
		}
		if r.Shard != nil {
			printf(w, "balancer\t%s, epoch %d\n", r.Shard.Holder, r.Shard.Epoch)
		}
	})
	if len(r.Conditions) > 0 {
		printf(out, "\n")
		rows(out, func(w io.Writer) {
			printf(w, "CONDITION\tSTATUS\tREASON\tSINCE\tMESSAGE\n")
			for _, c := range r.Conditions {
				printf(w, "%s\t%s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, age(now, c.LastTransitionTime.Time), printable([]byte(c.Message)))
			}
		})
	}
}

// ratio says how far the busiest endpoint is above the mean, and beside what.
func (r *PolicyReport) ratio() string {
	if r.MaxOverAverage == "" {
		return "not measured yet"
	}
	parts := []string{r.MaxOverAverage}
	for _, part := range []struct{ name, value string }{{"p95", r.P95OverAverage}, {"noise floor", r.NoiseFloor}, {"predicted", r.Predicted}} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	return strings.Join(parts, ", ")
}

func (r *PolicyReport) measured(now time.Time) string {
	at, err := time.Parse(time.RFC3339, r.MeasuredAt)
	if err != nil {
		return ""
	}
	return ", measured " + age(now, at) + " ago"
}

func sourceText(s v1alpha1.SourceStatus) string {
	text := plural(int(s.Endpoints), "endpoint", "endpoints")
	if s.Message != "" {
		text += ": " + printable([]byte(s.Message))
	}
	return text
}

func rolloutText(r *v1alpha1.RolloutStatus, now time.Time) string {
	text := fmt.Sprintf("%s, step %d since %s", r.Percent, r.Step, age(now, r.Since.Time))
	if r.Percent == "0%" {
		text += ": the weights are computed and not served"
	}
	if r.BadSince != nil {
		text += fmt.Sprintf("; its abort condition is met since %s", age(now, r.BadSince.Time))
	}
	if r.Aborted != "" {
		text += "; aborted: " + printable([]byte(r.Aborted))
	}
	return text
}

func weightsText(p *v1alpha1.PublishedWeights, now time.Time) string {
	text := fmt.Sprintf("version %d, changed %s ago, in %s", p.Version, age(now, p.PublishedAt.Time), plural(int(p.Sets), "WeightSet", "WeightSets"))
	if p.Pinned > 0 {
		text += fmt.Sprintf(", pinned to revision %d", p.Pinned)
	}
	return text
}

// printEndpoints writes the first of the endpoints.
func (r *PolicyReport) printEndpoints(out io.Writer, most int, wide bool) {
	if len(r.Endpoints) == 0 {
		printf(out, "\nNo endpoint has a weight.\n")
		return
	}
	shown := r.Endpoints
	if most > 0 {
		shown = shown[:min(most, len(shown))]
	}
	printf(out, "\n")
	rows(out, func(w io.Writer) {
		header := "ENDPOINT\tZONE\tWEIGHT\tCOMPUTED\tUTILISATION\tOVER AVG\tSTATE\tSOURCE\tREPORTED"
		if wide {
			header += "\tADDRESS\tID"
		}
		printf(w, "%s\n", header)
		for _, e := range shown {
			printf(w, "%s\n", strings.Join(e.cells(wide), "\t"))
		}
	})
	if left := len(r.Endpoints) - len(shown); left > 0 {
		printf(out, "and %s: --endpoints 0 shows all\n", plural(left, "other", "others"))
	}
}

func (e EndpointReport) cells(wide bool) []string {
	utilization, over, reported := "-", "-", "-"
	if e.ReportedAt != "" {
		utilization, reported = decimals(e.Utilization, 4), e.Age+" ago"
	}
	if e.OverAverage > 0 {
		over = decimals(e.OverAverage, 3)
	}
	cells := []string{
		printable([]byte(e.called())), dash(e.Zone), decimals(e.Weight, 4), decimals(e.Computed, 4), utilization, over, dash(e.State), dash(e.Source), reported,
	}
	if wide {
		cells = append(cells, dash(e.Address), printable([]byte(e.ID)))
	}
	return cells
}
