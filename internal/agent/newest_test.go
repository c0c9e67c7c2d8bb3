// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/agent"
)

// peakMiB is how much memory a process has had at a time.
func peakMiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("the system does not say how much memory a process has")
	}
	match := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if match == nil {
		t.Fatalf("no peak in %s", text)
	}
	peak, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return peak / 1024
}

// TestStatusFlood: whoever fills the status listener, with connections that say nothing, that have asked and stay, or that take no
// answer, does not keep probes from theirs, and takes little memory.
func TestStatusFlood(t *testing.T) {
	const flood = 2048
	patience, mostMiB := time.Second, 48 // Kubelet waits for a second, and samples have 64 MiB.
	if raceDetector {
		patience, mostMiB = 10*time.Second, 160
	}
	for name, first := range map[string]string{
		"silent": "", "kept": "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", "halfway": "GET /metrics HTTP/1.1\r\nHost: a\r\nX: ",
		"pipelined": strings.Repeat("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 20), // The answers are not taken.
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			publish(t, dir, 1, names(t, "one"))
			p := startProcess(t, dir)
			var open []net.Conn
			defer func() {
				for _, conn := range open {
					_ = conn.Close()
				}
			}()
			for range min(flood, openFiles(t)-500) {
				conn, err := net.Dial("tcp", p.status)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, conn)
				_, _ = io.WriteString(conn, first) // It may have been closed already.
			}
			client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
			for range 20 {
				answer, err := client.Get("http://" + p.status + "/healthz")
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Fatalf("the probe got %s", answer.Status)
				}
			}
			if peak := peakMiB(t, p.command.Process.Pid); peak > mostMiB {
				t.Errorf("the process had %d MiB", peak)
			}
		})
	}
}

// TestStatusConnections: connections that are used stay while others are idle, and those that end give their place back.
func TestStatusConnections(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir, StatusListen: "127.0.0.1:0", StatusMaxConnections: 3})
	get(t, r.url("status")+"/healthz")
	var open []net.Conn
	for i := range 10 {
		conn, err := net.Dial("tcp", r.addresses["status"])
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		accepted := fmt.Sprintf("ringwright_agent_connections_accepted_total{listener=\"status\"} %d\n", i+2)
		eventually(t, "the connection", func() bool { // Over one that is kept.
			return strings.Contains(get(t, r.url("status")+"/metrics").body, accepted)
		})
	}
	got := get(t, r.url("status")+"/metrics").body
	for _, line := range []string{
		`ringwright_agent_connections_limit{listener="status"} 3`, `ringwright_agent_connections_refused_total{listener="status"} 0`,
		`ringwright_agent_connections_accepted_total{listener="status"} 11`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	for _, conn := range open { // One that says nothing holds the stop up.
		_ = conn.Close()
	}
	r.end(t)
}
