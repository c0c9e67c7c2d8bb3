// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"net/http"
	"runtime"
	"slices"

	"github.com/ringwright/ringwright/internal/agentapi"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// status answers GET /v1/status.
func (h *handler) status(w http.ResponseWriter, _ *http.Request) int {
	stats, state, force := h.client.Stats(), h.client.State(), h.override.get()
	body := agentapi.Status{
		Ready:      state != nil,
		Datacenter: h.datacenter,
		Forced:     force.String(),
		StartedAt:  h.started.UTC(),
		Draining:   h.draining.Load(),
		NotApplied: h.notApplied(),
		LastError:  newLoadError(stats.LastError),
		Counters:   newCounters(stats),
		Warnings:   slices.Concat(warnings(stats, state, force), h.warnings, h.partWarnings()),
		Build:      agentapi.Build{Version: h.version, Go: runtime.Version()},
	}
	if state != nil {
		body.Routing = newRouting(state)
	}
	return writeJSON(w, http.StatusOK, body)
}

func newRouting(state *ringclient.State) *agentapi.Routing {
	routing := &agentapi.Routing{
		Ring: state.RingName(), UID: state.UID(), Generation: state.Generation(), LeaderEpoch: state.LeaderEpoch(),
		LoadedAt: state.LoadedAt().UTC(), Stable: newRing(state.Stable()), BasisPoints: state.BasisPoints(),
	}
	if loaded, found := state.Candidate(); found {
		candidate := newRing(loaded)
		routing.Candidate = &candidate
	}
	return routing
}

func newRing(loaded ringclient.Loaded) agentapi.Ring {
	return agentapi.Ring{
		Digest: loaded.Digest, Version: loaded.Ring.Algorithm().Version.String(), Revision: loaded.Revision,
		Encoding: loaded.Ring.Encoding().String(), Backends: loaded.Ring.Len(), Down: loaded.Down, Points: loaded.Ring.PointCount(),
	}
}

func newLoadError(failure *ringclient.Failure) *agentapi.LoadError {
	if failure == nil {
		return nil
	}
	last := &agentapi.LoadError{
		Reason: string(failure.Reason), Message: failure.Err.Error(), Time: failure.At.UTC(), Current: failure.Current,
	}
	var loadError *ringclient.LoadError
	if errors.As(failure.Err, &loadError) {
		last.File, last.Value, last.Limit = loadError.File, loadError.Value, loadError.Limit
	}
	return last
}

func newCounters(stats ringclient.Stats) agentapi.Counters {
	c := agentapi.Counters{
		Loads: stats.Loads, LoadErrors: make(map[string]uint64, len(stats.LoadErrors)), LoadSeconds: stats.LoadTime.Seconds(),
		Selections: stats.Selections, Failovers: stats.Failovers, Errors: stats.Errors, Rings: make([]agentapi.RingCounters, len(stats.Rings)),
		BytesHeld: stats.BytesHeld,
	}
	for reason, n := range stats.LoadErrors {
		c.LoadErrors[string(reason)] = n
	}
	for i, r := range stats.Rings {
		c.Rings[i] = agentapi.RingCounters{
			Role: r.Role.String(), Revision: r.Revision, Digest: r.Digest, Selections: r.Selections, Failovers: r.Failovers,
			Errors: r.Errors,
		}
	}
	return c
}

// warnings says what is wrong at this moment though lookups are answered.
func warnings(stats ringclient.Stats, state *ringclient.State, force ringclient.Force) []string {
	var list []string
	if force != ringclient.ForceNone {
		list = append(list, "the split is overridden: "+force.String()+" answers all keys")
	}
	if force == ringclient.ForceCandidate && state != nil {
		if _, found := state.Candidate(); !found {
			list = append(list, "the override has no effect: there is no candidate, stable answers all keys")
		}
	}
	if stats.WatchError != "" {
		list = append(list, "no file events, only the poll finds changes: "+stats.WatchError)
	}
	for _, path := range stats.SubPathMounts {
		list = append(list, path+" is mounted with subPath: kubelet will never update it")
	}
	return list
}
