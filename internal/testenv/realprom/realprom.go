// SPDX-License-Identifier: Apache-2.0

// Package realprom starts a real Prometheus for tests, with data of their own.
package realprom

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Programs returns the paths of prometheus and promtool. Where they are not installed the test is skipped, or fails in CI.
func Programs(t testing.TB) (server, tool string) {
	t.Helper()
	return program(t, "prometheus"), program(t, "promtool")
}

// program returns the path of one, which CI has.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI has no %s: install Debian's prometheus", name)
		}
		t.Skipf("no %s: install Debian's prometheus", name)
	}
	return path
}

// Start starts a Prometheus that has the series of a text of OpenMetrics with timestamps, and nothing else. It returns its URL; stop ends it.
func Start(server, tool string, openMetrics []byte) (address string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "ringwright-prometheus-")
	if err != nil {
		return "", nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	data, config := filepath.Join(dir, "data"), filepath.Join(dir, "prometheus.yml")
	metrics := filepath.Join(dir, "metrics.txt")
	for path, content := range map[string][]byte{config: []byte("{}"), metrics: openMetrics} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return "", remove, err
		}
	}
	if output, err := exec.Command(tool, "tsdb", "create-blocks-from", "openmetrics", metrics, data).CombinedOutput(); err != nil {
		return "", remove, fmt.Errorf("promtool: %w\n%s", err, output)
	}
	address, err = freeAddress()
	if err != nil {
		return "", remove, err
	}
	var log bytes.Buffer
	cmd := exec.Command(server, "--config.file="+config, "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=100y",
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stderr, cmd.Stdout = &log, &log
	if err := cmd.Start(); err != nil {
		return "", remove, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		remove()
	}
	for range 200 {
		if response, err := http.Get("http://" + address + "/-/ready"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return "http://" + address, stop, nil
			}
		}
		<-time.After(50 * time.Millisecond)
	}
	return "", stop, fmt.Errorf("starting Prometheus: not ready: %s", strings.TrimSpace(log.String()))
}

// freeAddress returns one of this host that nobody listens at.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
