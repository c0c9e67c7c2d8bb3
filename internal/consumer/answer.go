// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ringwright/ringwright/internal/agentapi"
	"github.com/ringwright/ringwright/internal/plan"
)

// The limits of what is kept of an answer: in bytes, and how many of its rings are looked at.
const (
	maxRingBytes    = 127 // Namespace and name.
	maxUIDBytes     = 64
	maxDigestBytes  = 71
	maxMessageBytes = 256
	maxRings        = 16 // An agent has no more.
)

// Answer is what an agent says of itself.
type Answer struct {
	plan.Answer
	Counted Counted
}

// status is the part of [agentapi.Status] that is read. Its only list has a fixed length, so that an answer cannot become much larger
// than it is.
type status struct {
	Ready      bool   `json:"ready"`
	Datacenter string `json:"datacenter"`
	*agentapi.Routing
	StartedAt  time.Time `json:"startedAt"`
	Forced     string    `json:"forced"`
	NotApplied string    `json:"notApplied"`
	LastError  *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
		Current bool   `json:"current"`
	} `json:"lastError"`
	Counters struct {
		Rings [maxRings]agentapi.RingCounters `json:"rings"` // What does not fit is left out.
	} `json:"counters"`
}

// parse reads an answer. What it keeps has a limit; an answer that goes beyond is none of an agent.
func parse(body []byte) (Answer, error) {
	var s status
	if err := json.Unmarshal(body, &s); err != nil {
		return Answer{}, failf(failedContent, "its answer is not the status of an agent")
	}
	a := Answer{Answer: plan.Answer{Datacenter: s.Datacenter, Forced: s.Forced}, Counted: Counted{Started: s.StartedAt.UTC()}}
	if len(validation.IsValidLabelValue(s.Datacenter)) > 0 {
		return Answer{}, failf(failedContent, "it gives a datacenter that is not the value of a label")
	}
	if s.Forced != "" && s.Forced != "stable" && s.Forced != "candidate" {
		return Answer{}, failf(failedContent, "it was told to use a ring that is neither stable nor candidate")
	}
	if r := s.Routing; r != nil && s.Ready {
		a.Ready = true
		a.Asked = plan.Asked{Ring: r.Ring, UID: r.UID, Generation: r.Generation, LeaderEpoch: r.LeaderEpoch, Stable: r.Stable.Digest}
		if r.Candidate != nil {
			a.Candidate = r.Candidate.Digest
		}
	}
	for _, field := range []struct {
		name, value string
		limit       int
	}{
		{"ring", a.Ring, maxRingBytes}, {"uid", a.UID, maxUIDBytes}, {"stable.digest", a.Stable, maxDigestBytes}, {"candidate.digest", a.Candidate, maxDigestBytes},
	} {
		if len(field.value) > field.limit || field.value != printable(field.value) {
			return Answer{}, failf(failedContent, "its %s is not printable text of at most %d bytes", field.name, field.limit)
		}
	}
	if a.Generation < 0 || a.LeaderEpoch < 0 {
		return Answer{}, failf(failedContent, "its generation or leader epoch is below 0")
	}
	if e := s.LastError; e != nil && e.Current {
		a.LoadError = cut(printable(e.Reason+": "+e.Message), maxMessageBytes)
	}
	a.NotApplied = cut(printable(s.NotApplied), maxMessageBytes)
	rings := s.Counters.Rings[:]
	a.Counted.Stable, a.Counted.Candidate = countsOf(rings, "stable", a.Stable), countsOf(rings, "candidate", a.Candidate)
	return a, nil
}

// printable replaces what could hide or break text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// cut shortens text to a limit of bytes, in a copy that does not keep the rest in memory.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:limit], ""))
}
