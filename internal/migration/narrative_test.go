// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/testenv/golden"
)

// line is one call as people read it: the minute, what is done at which step, the split, the soak, what holds, the effects.
func line(s State, effects []Effect, minute int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%3d  %-28s", minute, place(s))
	for _, name := range slices.Sorted(maps.Keys(s.Split)) {
		fmt.Fprintf(&b, " %s=%d", name, s.Split[name])
	}
	if s.At == Soaking {
		fmt.Fprintf(&b, " soaked %s", s.Soak.Credited)
	}
	if s.Back != nil && (s.At == RollingBack || s.At == RolledBack) {
		fmt.Fprintf(&b, " because %s %s", s.Back.Cause, s.Back.Detail)
	}
	if len(s.Unreached) > 0 {
		fmt.Fprintf(&b, " not in %v", s.Unreached)
	}
	for _, h := range s.Holds {
		fmt.Fprintf(&b, "; held by %s: %s", h.Type, h.Detail)
	}
	for _, e := range effects {
		switch e.Kind {
		case Answer:
			fmt.Fprintf(&b, "; %s of %s: %s", e.Answered.Type, e.Answered.Actor, orAccepted(e.Answered.Refusal))
		case Publish:
			fmt.Fprintf(&b, "; Publish %s %v", e.Ring, e.Split)
		default:
			fmt.Fprintf(&b, "; %s %s", e.Kind, e.Ring)
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

func orAccepted(r Refusal) string {
	if r == "" {
		return "accepted"
	}
	return "refused, " + string(r)
}

func place(s State) string {
	switch {
	case !stepPlace(s.At):
		return string(s.At)
	case s.Retirement():
		return "retirement " + string(s.At)
	default:
		return fmt.Sprintf("%s/%d %s", s.Plan[s.Stage].Name, s.Step+1, s.At)
	}
}

// TestNarratives tells runs as people would read them.
func TestNarratives(t *testing.T) {
	at := func(minute int, do func(r *run)) map[int]func(r *run) { return map[int]func(r *run){minute: do} }
	give := func(kind ActionType, token string) func(r *run) {
		return func(r *run) { r.act(Action{ID: fmt.Sprint(kind, r.w.now), Type: kind, Token: token, Actor: "ann"}) }
	}
	for name, tale := range map[string]struct {
		rings   []string
		minutes int
		events  []map[int]func(r *run)
	}{
		"forward":     {[]string{"edge"}, 45, nil},
		"two-rings":   {[]string{"edge", "tile"}, 12, nil},
		"pause":       {[]string{"edge"}, 16, []map[int]func(r *run){at(5, give(PauseAction, "")), at(9, func(r *run) { r.act(Action{ID: "resume", Type: ResumeAction, Token: r.s.Token(), Actor: "bob"}) })}},
		"gate-down":   {[]string{"edge"}, 18, []map[int]func(r *run){at(5, func(r *run) { r.gates["errors"] = NoData }), at(10, func(r *run) { r.gates["errors"] = Pass })}},
		"harm":        {[]string{"edge"}, 22, []map[int]func(r *run){at(10, func(r *run) { r.gates["errors"] = Fail }), at(14, func(r *run) { r.gates["errors"] = Pass }), at(17, func(r *run) { r.spec.Attempt = 2 })}},
		"unreachable": {[]string{"edge"}, 20, []map[int]func(r *run){at(8, func(r *run) { r.fleet["a"] = gone }), at(12, func(r *run) { r.spec.Backward = true })}},
		"limits":      {[]string{"edge"}, 24, []map[int]func(r *run){at(9, func(r *run) { r.spec.Limits.MaxTraffic = 1000 }), at(15, func(r *run) { r.spec.Limits.MaxTraffic = whole })}},
		"staged": {[]string{"edge"}, 24, []map[int]func(r *run){
			at(0, func(r *run) { r.spec.Rollback.Steps, r.spec.Rollback.Interval = []int{4000, 1000, 0}, 3*tick }), at(9, give(RollbackAction, "1"))}},
		"deleted": {[]string{"edge"}, 16, []map[int]func(r *run){at(9, func(r *run) { r.deleted = true })}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(tale.rings...)
			var b strings.Builder
			for minute := range tale.minutes {
				if r.help(); name == "pause" {
					r.edit = nil
				}
				for _, event := range tale.events {
					if do := event[minute]; do != nil {
						do(r)
					}
				}
				list := r.step()
				b.WriteString(line(r.s, list, minute))
			}
			golden.Assert(t, filepath.Join("testdata", name+".golden"), []byte(b.String()))
		})
	}
}
