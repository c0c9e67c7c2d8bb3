// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// client asks for the objects /0, /1 and so on in turn.
type client struct {
	url        string
	rate, keys int

	mu    sync.Mutex
	stats stats
}

// stats are what the tests read, at /stats.
type stats struct {
	Requests int `json:"requests"`
	Failed   int `json:"failed"`
	// Failures are the first few.
	Failures []string `json:"failures"`
	// Moved is how often an object was answered by another backend than the time before.
	Moved int `json:"moved"`
	// Owners are the backends that answered last, by the number of the object; empty where none did.
	Owners []string `json:"owners"`
}

// enoughFailures is how many are kept with their text.
const enoughFailures = 20

func (c *client) run(ctx context.Context, listen string) error {
	c.stats.Owners = make([]string, c.keys)
	requests := make(chan int, c.rate)
	asker := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	for range 32 {
		go func() {
			for key := range requests {
				owner, err := ask(asker, fmt.Sprintf("%s/%d", c.url, key))
				c.note(key, owner, err)
			}
		}()
	}
	go func() {
		tick := time.NewTicker(time.Second / time.Duration(c.rate))
		defer tick.Stop()
		for key := 0; ; key = (key + 1) % c.keys {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				requests <- key
			}
		}
	}()
	return serve(ctx, listen, 0, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = json.NewEncoder(w).Encode(c.stats)
	}))
}

func ask(asker *http.Client, url string) (string, error) {
	response, err := asker.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 500))
	if response.StatusCode != http.StatusNoContent {
		return "", fmt.Errorf("GET %s: %s: %s", url, response.Status, text)
	}
	return response.Header.Get("X-Backend"), nil
}

func (c *client) note(key int, owner string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.stats
	s.Requests++
	if err != nil {
		s.Failed++
		if len(s.Failures) < enoughFailures {
			s.Failures = append(s.Failures, time.Now().Format("15:04:05.000 ")+err.Error())
		}
		return
	}
	if before := s.Owners[key]; before != "" && before != owner {
		s.Moved++
	}
	s.Owners[key] = owner
}
