// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// zero is when the data of the real Prometheus begins. Its series have a sample every 15 seconds for an hour.
var zero = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	scrape = 15 * time.Second
	hour   = 240 // Scrapes.
)

// openMetrics is that data. In lab01 the candidate fails 1 % of 100 requests a second and the stable ring 0.2 % of 900; from minute
// 30 on the candidate fails 10 %. quiet02 has no traffic. gone_gauge ends in minute 20.
func openMetrics() []byte {
	var out bytes.Buffer
	series := func(labels string, name string, rate func(minute float64) float64) {
		total := 0.
		for i := range hour + 1 {
			at := zero.Add(time.Duration(i) * scrape)
			fmt.Fprintf(&out, "%s{%s} %g %d\n", name, labels, total, at.Unix())
			total += rate(float64(i)/4) * scrape.Seconds()
		}
	}
	constant := func(rate float64) func(float64) float64 { return func(float64) float64 { return rate } }
	both := func(name string, candidate, stable func(float64) float64) {
		fmt.Fprintf(&out, "# TYPE %s counter\n", name)
		series(`datacenter="lab01",role="candidate"`, name+"_total", candidate)
		series(`datacenter="lab01",role="stable"`, name+"_total", stable)
		series(`datacenter="quiet02",role="candidate"`, name+"_total", constant(0))
		series(`datacenter="quiet02",role="stable"`, name+"_total", constant(0))
	}
	both("requests", constant(100), constant(900))
	both("failed", func(minute float64) float64 {
		if minute >= 30 {
			return 10
		}
		return 1
	}, constant(1.8))
	fmt.Fprintf(&out, "# TYPE gone_gauge gauge\n")
	for i := range hour / 3 {
		fmt.Fprintf(&out, "gone_gauge 7 %d\n", zero.Add(time.Duration(i)*scrape).Unix())
	}
	out.WriteString("# EOF\n")
	return out.Bytes()
}

// program returns the path of one, which CI has.
func program(t *testing.T, name string) string {
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

// realPrometheus is one server for all tests of the package, which TestMain ends.
var realPrometheus struct {
	sync.Once
	address string
	failure error
	stop    func()
}

// promServer returns the address of a real Prometheus that has the data.
func promServer(t *testing.T) string {
	t.Helper()
	server, tool := program(t, "prometheus"), program(t, "promtool")
	realPrometheus.Do(func() {
		realPrometheus.address, realPrometheus.stop, realPrometheus.failure = startPrometheus(server, tool)
	})
	if realPrometheus.failure != nil {
		t.Fatal(realPrometheus.failure)
	}
	return realPrometheus.address
}

func startPrometheus(server, tool string) (address string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "ringwright-gate-")
	if err != nil {
		return "", nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	data, config := filepath.Join(dir, "data"), filepath.Join(dir, "prometheus.yml")
	metrics := filepath.Join(dir, "metrics.txt")
	for path, content := range map[string][]byte{config: []byte("{}"), metrics: openMetrics()} {
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
	return "", stop, fmt.Errorf("Prometheus is not ready: %s", strings.TrimSpace(log.String()))
}

// freeAddress returns one of this host that nobody listens at.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
