// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// component is a part of the agent that runs beside the listeners.
type component interface {
	// Run works until ctx ends, which is when no request runs any more, and then returns nil. An error before that ends the agent.
	Run(ctx context.Context) error
}

// components returns what the configuration wants to run beside the listeners.
func components(_ Config, h *handler) []component {
	list := []component{&healthReporter{h}}
	for _, p := range h.parts {
		list = append(list, p)
	}
	return list
}

// Run serves lookups until ctx ends, then lets the running requests end and returns nil. It starts without a ring and is
// ready once there is one. It returns an error where the configuration is wrong, an address cannot be listened on, or
// requests do not end within the time for it.
func Run(ctx context.Context, config Config) error {
	config, err := config.complete()
	if err != nil {
		return err
	}
	parts, err := config.source()
	if err != nil {
		return err
	}
	client, err := ringclient.Open(config.Dir, ringclient.Options{
		WaitForRing: true, PollInterval: config.PollInterval, MaxPoints: config.MaxPoints, Logger: config.Logger,
		Datacenter: config.Datacenter, Force: config.Force, Ring: config.API.HashRing,
	})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // It always returns nil.
	h := newHandler(config, client)
	if err := h.addParts(config, parts); err != nil {
		return err
	}
	if config.Force != ringclient.ForceNone {
		config.Logger.Warn("override from the start", "ring", config.Force.String())
	}
	endpoints, err := h.endpoints(ctx, config)
	if err != nil {
		return err
	}
	h.metrics.listeners.endpoints = endpoints
	announce(config, endpoints)
	return h.run(ctx, config, endpoints)
}

func announce(config Config, endpoints []*endpoint) {
	for _, e := range endpoints {
		config.Logger.Info("serving", "listener", e.name, "address", e.listener.Addr().String(), "dir", config.Dir, "version", config.Version)
		if config.Listening != nil {
			config.Listening(e.name, e.listener.Addr())
		}
	}
}

// run serves and runs the components until ctx ends or one of them fails. Everything has ended when it returns.
func (h *handler) run(asked context.Context, config Config, endpoints []*endpoint) error {
	ctx, cancel := context.WithCancel(asked)
	defer cancel()
	// What runs beside the listeners goes on until they are done.
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var group errgroup.Group
	start := func(work func() error) {
		group.Go(func() error {
			err := work()
			if err != nil {
				cancel()
			}
			return err
		})
	}
	for _, e := range endpoints {
		start(e.serve)
	}
	for _, c := range components(config, h) {
		start(func() error { return c.Run(beside) })
	}
	<-ctx.Done()
	if asked.Err() == nil { // Something failed: nobody waits for this agent any more.
		config.DrainDelay = 0
	}
	err := h.drain(ctx, config, endpoints)
	end()
	return errors.Join(group.Wait(), err)
}

// drain stops serving so that nobody who behaves loses a request. First everybody is told, by readyz and with each answer, while the
// listeners stay open; then they are closed, and what is open ends.
func (h *handler) drain(ctx context.Context, config Config, endpoints []*endpoint) error {
	config.Logger.Info("stopping", "delay", config.DrainDelay, "timeout", config.ShutdownTimeout)
	h.draining.Store(true)
	h.metrics.draining.Set(1)
	for _, e := range endpoints {
		if told, ok := e.server.(interface{ Draining() }); ok {
			told.Draining()
		}
	}
	<-time.After(config.DrainDelay)
	// ctx has ended, so that the stop needs a time of its own.
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.ShutdownTimeout)
	defer cancel()
	errs := make([]error, len(endpoints))
	var group errgroup.Group
	for i, e := range endpoints {
		group.Go(func() error { errs[i] = e.stop(stopping); return nil })
	}
	_ = group.Wait() // Each keeps its error.
	return errors.Join(errs...)
}
