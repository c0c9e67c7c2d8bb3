// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// wholeShare is all keys, in basis points.
const wholeShare = 10_000

// closeStep says what a step has moved, and compares that with what was announced.
func (m *migrationDemo) closeStep(s *shownStep) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "  \tasked\ton the candidate\tmoved by the step\tannounced\tanswers\tby the candidate\t503\torigin\tannounced")
	var wrong []string
	for _, datacenter := range []string{firstDatacenter, brokenDatacenter} {
		seen := m.observe(s, datacenter)
		_, _ = fmt.Fprintf(out, "  %s\t%.4g%%\t%s\t%s\t%.2f%%, %d to %d\t%d\t%s\t%d\t%d\t%s\n", datacenter, 100*seen.share,
			part(seen.candidate, sampledKeys), part(seen.moved, sampledKeys), 100*seen.part, seen.movedLow, seen.movedHigh,
			seen.requests, part(seen.byCandidate, seen.requests), seen.faults, seen.fetched, seen.announcedCold())
		wrong = append(wrong, seen.wrong(datacenter)...)
		wrong = append(wrong, m.compareSets(s, datacenter)...)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	s.showGates()
	if len(wrong) > 0 {
		return fmt.Errorf("%s: %s", s.name, strings.Join(wrong, "; "))
	}
	if _, again := m.sets[s.name]; again {
		fmt.Println("  The same keys as at this step of the first attempt")
	} else {
		m.sets[s.name] = s.sets
	}
	m.present, m.shares, m.closed = s.sets, s.shares, s.to
	return nil
}

// showGates says what the gates that judge the step said about it last.
func (s *shownStep) showGates() {
	for _, g := range s.gates {
		judges := len(s.judges) == 0 || slices.Contains(s.judges, g.Name)
		if judges && g.At != nil && !g.At.Before(&s.effective) {
			fmt.Printf("  Gate %s: %s, %s\n", g.Name, g.Result, g.Detail)
		}
	}
}

// compareSets says what is wrong with which keys are on the candidate.
func (m *migrationDemo) compareSets(s *shownStep, datacenter string) (wrong []string) {
	now := s.sets.candidate[datacenter]
	if n := missing(m.present.candidate[datacenter], now); n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d keys of %s have left the candidate though the share grew", n, datacenter))
	}
	if first, again := m.sets[s.name]; again && !maps.Equal(first.candidate[datacenter], now) {
		wrong = append(wrong, fmt.Sprintf("other keys of %s are on the candidate than in the first attempt", datacenter))
	}
	return wrong
}

// seenStep is what was seen of a step in one datacenter, and the bounds of what was announced.
type seenStep struct {
	// share is that of the keys which is on the candidate, part that which moves by the step.
	share, part                            float64
	candidate, candidateLow, candidateHigh int
	moved, movedLow, movedHigh             int
	// cold is how many served keys have moved to a cache that had not had them, fetched how many requests the origin got.
	cold, coldLow, coldHigh, fetched int
	requests, byCandidate, faults    int
	// strays are answers by the other ring than the agents said, failovers such by another cache than the owner.
	strays, failovers int
	// complete says that each served key was asked for while the step was in effect.
	complete bool
	// warm says that the caches on the candidate have been there before, away that the origin is out of reach.
	warm, away bool
}

// part is a count and its part of a whole, for people.
func part(count, whole int) string {
	if count == 0 {
		return "0"
	}
	return fmt.Sprintf("%d = %.2f%%", count, 100*float64(count)/float64(whole))
}

// announcedCold is how many requests the origin is to have got, for people.
func (s seenStep) announcedCold() string {
	switch {
	case s.moved == 0:
		return "0"
	case s.away:
		return "out of reach"
	case s.warm && s.cold == 0:
		return "0, warm since the first attempt"
	default:
		return fmt.Sprintf("%d to %d", s.coldLow, s.coldHigh)
	}
}

// observe counts what happened in a datacenter since the step before was looked at last.
func (m *migrationDemo) observe(s *shownStep, datacenter string) seenStep {
	seen := seenStep{share: float64(s.shares[datacenter]) / wholeShare}
	set := s.sets.candidate[datacenter]
	seen.candidate = len(set)
	seen.candidateLow, seen.candidateHigh = bounds(sampledKeys, seen.share)
	// A key moves where the share reaches it, and where its owner on the candidate is another one.
	seen.part = float64(s.shares[datacenter]-m.shares[datacenter]) / wholeShare * m.movement
	keys := movedOwners(m.present.owners[datacenter], s.sets.owners[datacenter])
	seen.moved = len(keys)
	seen.movedLow, seen.movedHigh = bounds(sampledKeys, seen.part)

	had := map[fetch]bool{}
	for _, f := range m.origin.between(0, m.closed.fetches) {
		had[f] = true
	}
	for i := range servedKeys {
		key := sampleKey(i)
		if !keys[key] {
			continue
		}
		if !had[fetch{datacenter, s.sets.owners[datacenter][key], key}] {
			seen.cold++
		}
	}
	seen.coldLow, seen.coldHigh = bounds(servedKeys, seen.part)
	for _, f := range m.origin.between(m.closed.fetches, s.to.fetches) {
		if f.datacenter == datacenter {
			seen.fetched++
		}
	}
	_, seen.warm = m.sets[s.name]
	seen.away = m.origin.isAway(datacenter)
	m.observeAnswers(s, datacenter, &seen)
	return seen
}

// observeAnswers counts the answers.
func (m *migrationDemo) observeAnswers(s *shownStep, datacenter string, seen *seenStep) {
	asked := map[string]bool{}
	for _, a := range m.traffic.between(m.closed, s.to) {
		if a.datacenter != datacenter {
			continue
		}
		if a.failover {
			seen.failovers++
		}
		if a.began.Before(s.from.at) {
			continue
		}
		asked[a.key] = true
		seen.requests++
		if a.candidate {
			seen.byCandidate++
		}
		if a.fault {
			seen.faults++
		}
		if a.candidate != s.sets.candidate[datacenter][a.key] || !a.failover && a.backend != s.sets.owners[datacenter][a.key] {
			seen.strays++
		}
	}
	seen.complete = len(asked) == servedKeys
}

// wrong says what is not as it was announced.
func (s seenStep) wrong(datacenter string) (wrong []string) {
	add := func(is bool, format string, values ...any) {
		if is {
			wrong = append(wrong, datacenter+": "+fmt.Sprintf(format, values...))
		}
	}
	add(s.candidate < s.candidateLow || s.candidate > s.candidateHigh, "%d keys are on the candidate", s.candidate)
	add(s.moved < s.movedLow || s.moved > s.movedHigh, "%d keys have moved", s.moved)
	add(s.strays > 0, "%d requests were answered by another ring or cache than the agents say", s.strays)
	add(!s.warm && (s.cold < s.coldLow || s.cold > s.coldHigh), "%d keys that are asked for have moved to a cold cache", s.cold)
	add(s.fetched > s.cold+s.failovers, "%d requests went to the origin, for %d keys that have moved to a cold cache", s.fetched, s.cold)
	add(s.complete && !s.away && s.failovers == 0 && s.fetched < s.cold, "%d requests went to the origin, for %d keys that have moved to a cold cache", s.fetched, s.cold)
	add(!s.away && s.faults > 0, "%d requests failed", s.faults)
	return wrong
}
