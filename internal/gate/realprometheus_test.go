// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/testenv/realprom"
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
	server, tool := realprom.Programs(t)
	realPrometheus.Do(func() {
		realPrometheus.address, realPrometheus.stop, realPrometheus.failure = realprom.Start(server, tool, openMetrics())
	})
	if realPrometheus.failure != nil {
		t.Fatal(realPrometheus.failure)
	}
	return realPrometheus.address
}
