// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/protobuf/proto"
)

const (
	// windowHeader says what a report covers.
	windowHeader = "Ringwright-Window"
	// defaultPath is that of the balancer's gateway.
	defaultPath = "/v1/load"
	// firstInterval is the time between reports until the balancer says another one, and minInterval and maxInterval bound what it says.
	firstInterval, minInterval, maxInterval = 5 * time.Second, time.Second, 10 * time.Minute
	// firstPause is the pause after a failure, and maxPause the longest after several.
	firstPause, maxPause = time.Second, time.Minute
	// maxWindow is the longest time that a report can cover.
	maxWindow = time.Hour
	// maxAnswer is how much of an answer is read.
	maxAnswer = 4 << 10
)

// Push sends reports to the balancer at a URL such as "http://ringwright-balancer.ringwright-system.svc:18001" until ctx ends, and returns the
// error of ctx, or at once one of what it was given. Without a path in it, reports go to /v1/load.
//
// tokenFile is that of a projected service account token for the balancer's audience, which is read for each report.
//
// The balancer says how often; reports come up to a tenth earlier or later than that, so that pods do not come together. After a failure it
// waits a second, and twice as long after each further one up to a minute, or as long as the answer's Retry-After says. What happened
// in the meantime is lost: reports are of now.
func (r *Reporter) Push(ctx context.Context, target, tokenFile string) error {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("the URL must be one of http or https with a host; got %q", target)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = defaultPath
	}
	p := &pusher{Reporter: r, target: u.String(), tokenFile: tokenFile, client: r.client(), last: r.total()}
	defer p.client.CloseIdleConnections()
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = firstPause, maxPause, 2
	failing := false
	wait := firstInterval
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(jittered(wait)):
		}
		interval, err := p.push(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if !failing {
				r.options.Logger.Warn("the load cannot be pushed", "url", target, "error", err)
			}
			failing, wait = true, max(pauses.NextBackOff(), interval)
		default:
			if failing {
				r.options.Logger.Info("the load is pushed again", "url", target)
			}
			failing, wait = false, min(max(interval, minInterval), maxInterval)
			pauses.Reset()
		}
	}
}

// client follows no redirect: the token is for one address.
func (r *Reporter) client() *http.Client {
	client := &http.Client{Timeout: 5 * time.Second, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	if r.options.Client != nil {
		copied := *r.options.Client
		client = &copied
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// jittered returns up to a tenth more or less.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}

type pusher struct {
	*Reporter
	target, tokenFile string
	client            *http.Client
	// last are the totals that the next report begins with.
	last totals
}

// push sends one report, and returns how long to wait.
func (p *pusher) push(ctx context.Context) (time.Duration, error) {
	now := p.total()
	report, window := p.since(p.last, now)
	p.last = now
	body, err := proto.Marshal(report)
	if err != nil {
		return 0, fmt.Errorf("encoding the report: %w", err)
	}
	token, err := os.ReadFile(p.tokenFile)
	if err != nil {
		return 0, fmt.Errorf("reading the token: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.target, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set(windowHeader, min(window, maxWindow).String())
	response, err := p.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return read(response, answer)
}

// read returns what an answer says: the interval, or an error and how long to wait.
func read(response *http.Response, answer []byte) (time.Duration, error) {
	var said struct{ Interval, Error string }
	_ = json.Unmarshal(answer, &said) // What is not JSON says neither.
	if response.StatusCode == http.StatusOK {
		interval, err := time.ParseDuration(said.Interval)
		if err != nil {
			interval = firstInterval
		}
		return interval, nil
	}
	after, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	wait := time.Duration(min(max(after, 0), int(maxInterval.Seconds()))) * time.Second
	return wait, fmt.Errorf("HTTP status %d: %.200s", response.StatusCode, cmp.Or(said.Error, "no reason given"))
}
