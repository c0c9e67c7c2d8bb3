// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// statusAnswer is the body of /v1/status. What belongs to a ring is left out until one is loaded.
type statusAnswer struct {
	// Ready says that a ring is loaded.
	Ready bool `json:"ready"`
	*ringStatus
	// LastError is the latest read of the directory that failed, left out where none did.
	LastError *lastError `json:"lastError,omitempty"`
	Counters  counters   `json:"counters"`
	// Warnings say what is wrong though lookups are answered.
	Warnings []string `json:"warnings,omitempty"`
	Build    build    `json:"build"`
}

// ringStatus is the part of the status that a ring gives.
type ringStatus struct {
	Ring       string    `json:"ring"`
	Generation int64     `json:"generation"`
	Digest     string    `json:"digest"`
	Version    string    `json:"version"`
	Encoding   string    `json:"encoding"`
	Backends   int       `json:"backends"`
	Points     int       `json:"points"`
	LoadedAt   time.Time `json:"loadedAt"`
}

type lastError struct {
	Reason  ringclient.Reason `json:"reason"`
	Message string            `json:"message"`
	// File, Value and Limit say which file, what was found in it and what would have been taken.
	File  string    `json:"file,omitempty"`
	Value string    `json:"value,omitempty"`
	Limit string    `json:"limit,omitempty"`
	Time  time.Time `json:"time"`
	// Current says that no read has succeeded since.
	Current bool `json:"current"`
}

// counters count from the start of the process.
type counters struct {
	Loads       uint64                       `json:"loads"`
	LoadErrors  map[ringclient.Reason]uint64 `json:"loadErrors"`
	LoadSeconds float64                      `json:"loadSeconds"`
	Selections  uint64                       `json:"selections"`
	BytesHeld   int64                        `json:"bytesHeld"`
}

type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

func (h *handler) status(w http.ResponseWriter, _ *http.Request) {
	stats := h.client.Stats()
	answer := statusAnswer{
		Counters: counters{
			Loads: stats.Loads, LoadErrors: stats.LoadErrors, LoadSeconds: stats.LoadTime.Seconds(),
			Selections: stats.Selections, BytesHeld: stats.BytesHeld,
		},
		LastError: newLastError(stats.LastError),
		Warnings:  warnings(stats),
		Build:     build{Version: h.version, Go: runtime.Version()},
	}
	if state := h.client.State(); state != nil {
		answer.Ready = true
		answer.ringStatus = &ringStatus{
			Ring: state.RingName(), Generation: state.Generation(), Digest: state.Digest(), Version: state.Version().String(),
			Encoding: state.Ring().Encoding().String(), Backends: state.Ring().Len(), Points: state.Ring().PointCount(), LoadedAt: state.LoadedAt().UTC(),
		}
	}
	writeJSON(w, http.StatusOK, answer)
}

func newLastError(failure *ringclient.Failure) *lastError {
	if failure == nil {
		return nil
	}
	last := &lastError{
		Reason: failure.Reason, Message: failure.Err.Error(), Time: failure.At.UTC(), Current: failure.Current,
	}
	var loadError *ringclient.LoadError
	if errors.As(failure.Err, &loadError) {
		last.File, last.Value, last.Limit = loadError.File, loadError.Value, loadError.Limit
	}
	return last
}

func warnings(stats ringclient.Stats) []string {
	var list []string
	if stats.WatchError != "" {
		list = append(list, "no file events, only the poll finds changes: "+stats.WatchError)
	}
	for _, path := range stats.SubPathMounts {
		list = append(list, path+" is mounted with subPath: kubelet will never update it")
	}
	return list
}
