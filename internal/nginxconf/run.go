// SPDX-License-Identifier: Apache-2.0

package nginxconf

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

const (
	// lookInterval is how often the client is asked for its state, which is an atomic load.
	lookInterval = 100 * time.Millisecond
	// minRetry is how long to wait after something failed, the first time and, doubled each time, at most. A state that is new
	// does not wait: what was wrong can be right in it.
	minRetry, maxRetry = time.Second, time.Minute
)

// Renderer keeps the file of a [Config] equal to what a client has loaded.
type Renderer struct {
	config Config
	client *ringclient.Client

	// What follows is used by Run alone.

	// rendered is the state that content is of.
	rendered *ringclient.State
	content  []byte
	// told are the directives that NGINX was told of, nil before the first time: whether NGINX read the file that is there is
	// not known to a process that has just started.
	told *[sha256.Size]byte
	// next is before when NGINX is not told again.
	next time.Time
	// tried is the state with which something failed, retry when it is tried again, and delay how long that was.
	tried *ringclient.State
	retry time.Time
	delay time.Duration

	mu sync.Mutex
	// problem says why the file or NGINX is not up to date, lag what NGINX cannot follow.
	problem, lag string
	// applied is the state that the file has and NGINX was told of.
	applied  *ringclient.State
	reloads  uint64
	failures uint64
}

// New returns a renderer that has not started.
func New(config Config, client *ringclient.Client) (*Renderer, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	return &Renderer{config: config, client: client}, nil
}

// Run writes until ctx ends, and returns nil then. What goes wrong is tried again, and told by [Renderer.Warnings].
func (r *Renderer) Run(ctx context.Context) error {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		r.look(ctx, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look does what is to be done at a time.
func (r *Renderer) look(ctx context.Context, now time.Time) {
	state := r.client.State()
	if state == nil || now.Before(r.next) || state == r.tried && now.Before(r.retry) {
		return
	}
	err := r.render(state)
	if err == nil {
		err = r.bring(ctx, now)
	}
	if err == nil {
		r.tried, r.delay = nil, 0
		r.mu.Lock()
		r.applied = state
		r.mu.Unlock()
	} else {
		r.delay = min(max(minRetry, 2*r.delay), maxRetry)
		r.tried, r.retry = state, now.Add(r.delay)
	}
	r.note(err)
}

// render brings content to a state.
func (r *Renderer) render(state *ringclient.State) error {
	if state == r.rendered {
		return nil
	}
	content, lag, err := r.config.Render(momentOf(state))
	if err != nil {
		return err
	}
	r.rendered, r.content = state, content
	r.mu.Lock()
	r.lag = lag
	r.mu.Unlock()
	return nil
}

// bring writes the content where the file is another, and tells NGINX where the directives are others.
func (r *Renderer) bring(ctx context.Context, now time.Time) error {
	there, err := os.ReadFile(r.config.Output)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !bytes.Equal(there, r.content) {
		if err := r.config.install(ctx, r.content); err != nil {
			return err
		}
		r.config.Logger.Info("NGINX upstream written", "file", r.config.Output, "generation", r.rendered.Generation())
	}
	sum := sha256.Sum256(directives(r.content))
	if r.told != nil && *r.told == sum {
		return nil
	}
	if err := r.config.tell(ctx); err != nil {
		return err
	}
	r.told, r.next = &sum, now.Add(r.config.MinInterval)
	r.mu.Lock()
	r.reloads++
	r.mu.Unlock()
	r.config.Logger.Info("NGINX told", "generation", r.rendered.Generation())
	return nil
}

func (r *Renderer) note(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failures++
		if problem != r.problem {
			r.config.Logger.Warn("NGINX is not up to date", "error", err)
		}
	}
	r.problem = problem
}

// Warnings says what NGINX does not follow, and why the file or NGINX is not up to date; nothing where all is well.
func (r *Renderer) Warnings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	if r.lag != "" {
		list = append(list, "--nginx-output: "+r.lag)
	}
	if r.problem != "" {
		list = append(list, "--nginx-output: what NGINX has is not the ring: "+r.problem)
	}
	return list
}

// NotApplied says why NGINX does not route by what the client has loaded, "" where it does.
func (r *Renderer) NotApplied() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.problem != "":
		return "NGINX does not have the ring: " + r.problem
	case r.client.State() != r.applied:
		return "NGINX was not told of the ring yet"
	case r.lag != "":
		return "NGINX does not follow the split: " + r.lag
	}
	return ""
}

var (
	reloadsDesc = prometheus.NewDesc("ringwright_agent_nginx_reloads_total",
		"How often NGINX was told to read its configuration again.", nil, nil)
	failuresDesc = prometheus.NewDesc("ringwright_agent_nginx_failures_total",
		"How often the upstream could not be rendered, written or tested, or NGINX not be told.", nil, nil)
	currentDesc = prometheus.NewDesc("ringwright_agent_nginx_current",
		"1 while NGINX was told of the ring that is loaded, else 0; a split that it cannot follow does not count.", nil, nil)
)

// Describe sends the metrics that Collect sends.
func (r *Renderer) Describe(out chan<- *prometheus.Desc) {
	out <- reloadsDesc
	out <- failuresDesc
	out <- currentDesc
}

// Collect sends the metrics.
func (r *Renderer) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := 0.0
	if state := r.client.State(); r.problem == "" && state != nil && state == r.applied {
		current = 1
	}
	out <- prometheus.MustNewConstMetric(reloadsDesc, prometheus.CounterValue, float64(r.reloads))
	out <- prometheus.MustNewConstMetric(failuresDesc, prometheus.CounterValue, float64(r.failures))
	out <- prometheus.MustNewConstMetric(currentDesc, prometheus.GaugeValue, current)
}
