// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// wait lets fake time pass, and what is due run.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestPollFindsChangesWithoutEvents(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, published(1, addressRing(t, 5)).files(t))
	second := published(2, addressRing(t, 6)).files(t)
	synctest.Test(t, func(t *testing.T) {
		c := open(t, dir, ringclient.Options{PollOnly: true, PollInterval: ringclient.DefaultPollInterval})
		opened := c.State().LoadedAt()
		mount(t, dir, second)
		wait(ringclient.DefaultPollInterval - time.Nanosecond)
		if got := c.State().Generation(); got != 1 {
			t.Fatalf("generation %d before the poll", got)
		}
		wait(time.Nanosecond)
		if got := c.State(); got.Generation() != 2 || got.LoadedAt().Sub(opened) != 30*time.Second {
			t.Errorf("after the poll: generation %d, loaded %v after the first", got.Generation(), got.LoadedAt().Sub(opened))
		}
		wait(10 * ringclient.DefaultPollInterval)
		if stats := c.Stats(); stats.Loads != 2 || stats.LastError != nil || stats.WatchError != "" {
			t.Errorf("polls of unchanged files: %+v, want 2 loads and no error", stats)
		}
	})
}

// TestColdClientPollsFaster waits a second for the ring that a client with the default poll does not have yet.
func TestColdClientPollsFaster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	files := published(1, addressRing(t, 5)).files(t)
	synctest.Test(t, func(t *testing.T) {
		c, err := ringclient.Open(dir, ringclient.Options{PollOnly: true, WaitForRing: true})
		if err != nil {
			t.Fatal(err)
		}
		wait(2500 * time.Millisecond)
		if got := c.Stats().LoadErrors[ringclient.ReasonMissing]; got != 3 {
			t.Errorf("%d reads in 2.5 s, want 3", got)
		}
		mount(t, dir, files)
		if err := c.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEventsSettleIntoOneLoad counts the reads of a directory without a ring: each one is an error.
func TestEventsSettleIntoOneLoad(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		events, failures := make(chan fsnotify.Event), make(chan error)
		options := ringclient.Options{WaitForRing: true, PollInterval: time.Hour}
		c, err := ringclient.OpenWithEvents(dir, options, events, failures)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		reads := func() uint64 { return c.Stats().LoadErrors[ringclient.ReasonMissing] }
		for range 4 {
			events <- fsnotify.Event{}
			wait(ringclient.SettleTime / 5)
		}
		if got := reads(); got != 1 {
			t.Errorf("%d reads before the events settled, want that of Open", got)
		}
		wait(ringclient.SettleTime / 5)
		if got := reads(); got != 2 {
			t.Errorf("%d reads after they settled, want 2", got)
		}
		events <- fsnotify.Event{}
		wait(ringclient.SettleTime)
		if got := reads(); got != 3 {
			t.Errorf("%d reads after a later event, want 3", got)
		}
		failures <- fsnotify.ErrEventOverflow
		wait(ringclient.SettleTime)
		if got := reads(); got != 4 {
			t.Errorf("%d reads after events were lost, want 4", got)
		}
	})
}

// TestLogsEachFailureOnce fails in one way for a while, then in another, and then not any more.
func TestLogsEachFailureOnce(t *testing.T) {
	dir := t.TempDir()
	files := published(1, addressRing(t, 5)).files(t)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		open(t, dir, ringclient.Options{
			WaitForRing: true, PollOnly: true, PollInterval: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		wait(10 * time.Second)
		mount(t, dir, map[string][]byte{"routing.json": nil})
		wait(10 * time.Second)
		mount(t, dir, files)
		wait(10 * time.Second)
		var got []string
		for line := range strings.Lines(log.String()) {
			_, message, _ := strings.Cut(line, "msg=")
			got = append(got, message[:min(len(message), 33)])
		}
		want := []string{`"ring not loaded" reason=missing `, `"ring not loaded" reason=routing `, `"ring loaded" ring=cdn/edge gener`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestWaitEnds(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, ringclient.Options{WaitForRing: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	waited := make(chan error)
	go func() { waited <- c.Wait(t.Context()) }()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, ringclient.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}

func TestClosedClientAnswers(t *testing.T) {
	dir := t.TempDir()
	r := addressRing(t, 5)
	mount(t, dir, published(1, r).files(t))
	c := open(t, dir, ringclient.Options{})
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Wait(t.Context()); err != nil {
		t.Errorf("waiting for what is loaded: %v", err)
	}
	checkAnswers(t, c, 1, r)
}
