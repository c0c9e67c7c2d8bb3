// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	terminalInterval = time.Second      // A line that is drawn over.
	logInterval      = 30 * time.Second // Lines that stay in a log for ever.
	terminalWidth    = 79               // A longer line would wrap and could not be drawn over.
)

// progress tells a person how far a long step is: on a terminal in one line that
// changes, in a log in a line now and then.
type progress struct {
	terminal bool

	mu  sync.Mutex
	out io.Writer
}

// newProgress writes to f, which it asks whether it is a terminal.
func newProgress(f *os.File) *progress {
	info, err := f.Stat()
	return &progress{out: f, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// note prints the first line of text as a line of its own.
func (p *progress) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, _, _ := strings.Cut(text, "\n")
	_, _ = fmt.Fprintf(p.out, "%scontrolplane: %s\n", p.clear(), first)
}

// watch shows status at intervals until stop is called.
func (p *progress) watch(status func() string) (stop func()) {
	interval := logInterval
	if p.terminal {
		interval = terminalInterval
	}
	start, ticker, done := time.Now(), time.NewTicker(interval), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				p.draw(now.Sub(start), status())
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		wg.Wait()
		p.draw(0, "")
	}
}

// draw shows one status, or removes the last one from a terminal when text is empty.
func (p *progress) draw(elapsed time.Duration, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("controlplane: %s %s", elapsed.Round(time.Second), text)
	switch {
	case p.terminal && text == "":
		_, _ = fmt.Fprint(p.out, p.clear())
	case p.terminal:
		_, _ = fmt.Fprint(p.out, p.clear(), line[:min(len(line), terminalWidth)])
	case text != "":
		_, _ = fmt.Fprintln(p.out, line)
	}
}

// clear is what removes a status from a terminal.
func (p *progress) clear() string {
	if p.terminal {
		return "\r\x1b[K"
	}
	return ""
}

// meter counts what the Go command reports on its standard error.
type meter struct {
	mu         sync.Mutex
	downloaded int
	compiled   int
	total      int // 0 until known.
	last       string
	mains      []string
}

// expect tells the meter how many packages there are, and which ones are linked.
func (m *meter) expect(total int, mains []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total, m.mains = total, mains
}

// observe takes a line of go list or go build -v and returns whether it was progress:
// "go: downloading MODULE VERSION", or an import path.
func (m *meter) observe(line string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		m.downloaded++
		m.last = strings.Fields(line)[2]
		return true
	case m.total > 0 && line != "" && !strings.ContainsAny(line, " \t:"):
		m.compiled++
		m.last = line
		return true
	}
	return false
}

// status describes the step in a few words, the numbers first.
func (m *meter) status() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.total == 0 && m.downloaded == 0:
		return "loading packages"
	case m.total == 0:
		return fmt.Sprintf("downloading module %d: %s", m.downloaded, m.last)
	case m.compiled == 0, slices.Contains(m.mains, m.last):
		return "linking"
	}
	return fmt.Sprintf("of about %s: compiling %d of %d: %s", expectedBuild(), m.compiled, m.total, m.last)
}
