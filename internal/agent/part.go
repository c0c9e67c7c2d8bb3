// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/internal/agentapi"
	"github.com/ringwright/ringwright/internal/apisource"
	"github.com/ringwright/ringwright/internal/nginxconf"
)

const (
	// SourceDir is a directory that somebody else writes: kubelet, mostly.
	SourceDir = "dir"
	// SourceAPI is a directory that the agent writes, from ConfigMaps that it watches.
	SourceAPI = "api"
)

// part is a component with metrics, and with something to say in the status.
type part interface {
	component
	prometheus.Collector
	Warnings() []string
	// NotApplied says why what the part keeps up to date does not route by what is loaded; "" where it does, or routes nothing.
	NotApplied() string
}

// checkParts checks what concerns the parts.
func (c Config) checkParts() error {
	switch {
	case c.Source == SourceAPI:
		if err := c.API.Check(); err != nil {
			return err
		}
	case c.Source != SourceDir:
		return fmt.Errorf("--source is %q, not %s or %s", c.Source, SourceDir, SourceAPI)
	case c.API.HashRing != "":
		return fmt.Errorf("--hashring is %q, which is for --source=%s", c.API.HashRing, SourceAPI)
	}
	if c.NGINX.Output != "" {
		if err := c.NGINX.Check(); err != nil {
			return err
		}
	}
	if c.ProxyListen != "" {
		return c.Proxy.Check()
	}
	return nil
}

// source returns the part that writes the directory, where there is one.
func (c Config) source() ([]part, error) {
	if c.Source != SourceAPI {
		return nil, nil
	}
	source, err := apisource.New(c.API)
	if err != nil {
		return nil, err
	}
	return []part{source}, nil
}

// addParts adds parts that are there, and those that need the client.
func (h *handler) addParts(c Config, parts []part) error {
	h.parts = parts
	if c.NGINX.Output != "" {
		renderer, err := nginxconf.New(c.NGINX, h.client)
		if err != nil {
			return err
		}
		h.parts = append(h.parts, renderer)
	}
	for _, p := range h.parts {
		h.metrics.registry.MustRegister(p)
	}
	return nil
}

func (h *handler) partWarnings() []string {
	var list []string
	for _, p := range h.parts {
		list = append(list, p.Warnings()...)
	}
	return list
}

// notApplied joins what the parts do not route by yet, and cuts it to what the status has room for.
func (h *handler) notApplied() string {
	var list []string
	for _, p := range h.parts {
		if reason := p.NotApplied(); reason != "" {
			list = append(list, reason)
		}
	}
	text := strings.ToValidUTF8(strings.Join(list, "; "), "?")
	return strings.ToValidUTF8(text[:min(len(text), agentapi.MaxNotAppliedBytes)], "") // Half a letter at the end goes.
}
