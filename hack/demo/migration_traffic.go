// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// sampledKeys are looked up at each step, and the first of them, servedKeys, are asked for all the time.
	sampledKeys, servedKeys = 4000, 500
	roleCandidate           = "candidate"
)

// answered is what became of a request.
type answered struct {
	began           time.Time
	datacenter, key string
	candidate       bool
	backend         string
	failover, fault bool
}

// witness sends requests through the agents all the time, and remembers the answers.
type witness struct {
	load
	client *http.Client
	mu     sync.Mutex
	list   []answered
	faults int
}

// mark is a moment: how many answers and how many fetches from the origin there were.
type mark struct {
	at               time.Time
	answers, fetches int
}

func (m *migrationDemo) mark() mark {
	fetched, _ := m.origin.counts()
	return mark{at: time.Now(), answers: m.traffic.count(), fetches: fetched}
}

func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.list)
}

// between returns the answers from one moment to another whose requests began after the first.
func (w *witness) between(from, to mark) []answered {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.list[from.answers:to.answers]), func(a answered) bool { return a.began.Before(from.at) })
}

func (w *witness) end() {
	w.stop()
	w.client.CloseIdleConnections()
}

func sampleKey(i int) string { return fmt.Sprintf("/objects/%d", i) }

// warmUp begins the requests, and waits until the caches have everything.
func (m *migrationDemo) warmUp(ctx context.Context) error {
	say(fmt.Sprintf("Sending requests for %d objects through all agents, until the caches have them", servedKeys))
	m.traffic = &witness{client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: len(m.agents)}}}
	// One worker for each agent; those of a datacenter begin at other keys, so that all are seen soon.
	m.traffic.begin(ctx, len(m.agents), func(ctx context.Context, worker, i int) error {
		offset := worker % agentsOfDatacenter * servedKeys / agentsOfDatacenter
		return m.traffic.ask(ctx, m.agents[worker], sampleKey((i+offset)%servedKeys))
	})
	err := waitFor(ctx, "the caches to have everything", func(context.Context) error {
		if fetched, _ := m.origin.counts(); fetched < 2*servedKeys {
			return fmt.Errorf("%d objects have been fetched", fetched)
		}
		return m.traffic.broken()
	})
	if err != nil {
		return err
	}
	m.closed = m.mark()
	if m.initial, err = m.sample(ctx); err != nil {
		return err
	}
	m.present = m.initial
	fmt.Printf("  %d requests to the origin: each object once in each datacenter\n", m.closed.fetches)
	m.memory[0], err = m.measureMemory(ctx)
	return err
}

// broken returns the first failure that was not asked for.
func (w *witness) broken() error {
	if err := w.failure.Load(); err != nil {
		return &finalError{fmt.Errorf("%d of %d requests failed that should not have, the first with: %w", w.failed.Load(), w.sent.Load(), *err)}
	}
	return nil
}

// ask sends a request for a key through an agent. That the origin is out of reach is no error here.
func (w *witness) ask(ctx context.Context, a *ringAgent, key string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.proxy+key, nil)
	if err != nil {
		return err
	}
	request.Header.Set(datacenterHeader, a.datacenter)
	began := time.Now()
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	result := answered{began: began, datacenter: a.datacenter, key: key, fault: response.Header.Get(faultHeader) != ""}
	if response.StatusCode != http.StatusOK && !result.fault {
		return fmt.Errorf("GET %s by %s: %s: %s", key, a.name, response.Status, body)
	}
	if err := result.decided(response.Header.Get(decisionHeader)); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, result)
	if result.fault {
		w.faults++
	}
	return nil
}

// decided reads the header with the decision of an agent, such as: backend="cache-3", role=stable, revision=7, failover=?0, attempts=1.
func (a *answered) decided(header string) error {
	for part := range strings.SplitSeq(header, ", ") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "backend":
			a.backend = strings.Trim(value, `"`)
		case "role":
			a.candidate = value == roleCandidate
		case "failover":
			a.failover = value == "?1"
		}
	}
	if a.backend == "" {
		return errors.New("an answer without a decision: " + header)
	}
	return nil
}
