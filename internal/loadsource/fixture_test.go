// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/ringwright/ringwright/internal/loadreport"
)

// All sources are sources.
var _ = []Source{&ORCA{}, &Prometheus{}, &Metrics{}}

// TestMain ends the Prometheus of the tests, and looks for goroutines that they left.
func TestMain(m *testing.M) {
	code := m.Run()
	if prometheus.stop != nil {
		prometheus.stop()
	}
	if err := goleak.Find(goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var equal = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-6)}

// recorder keeps what a source says.
type recorder struct {
	mu       sync.Mutex
	reports  []loadreport.Report
	messages []string
	news     chan struct{}
}

func newRecorder() *recorder { return &recorder{news: make(chan struct{}, 1)} }

func (r *recorder) wake() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *recorder) report(reports ...loadreport.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, reports...)
	r.wake()
}

func (r *recorder) message(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, message)
	r.wake()
}

func (r *recorder) options() Options {
	return Options{Policy: "shop/checkout", Interval: 50 * time.Millisecond, Report: r.report, Message: r.message, AllowLoopback: true}
}

// take returns the reports since the last time, and the newest message.
func (r *recorder) take() (reports []loadreport.Report, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reports, r.reports = r.reports, nil
	if len(r.messages) > 0 {
		message = r.messages[len(r.messages)-1]
	}
	return reports, message
}

// until waits for what a source says to be so.
func (r *recorder) until(t *testing.T, is func(all []loadreport.Report, message string) bool) {
	t.Helper()
	var all []loadreport.Report
	deadline := time.After(20 * time.Second)
	for {
		reports, message := r.take()
		if all = append(all, reports...); is(all, message) {
			return
		}
		select {
		case <-r.news:
		case <-deadline:
			t.Fatalf("%d reports, message %q", len(all), message)
		}
	}
}

// says waits for a message that has a text, or is "".
func (r *recorder) says(t *testing.T, text string) {
	t.Helper()
	r.until(t, func(_ []loadreport.Report, message string) bool {
		return message == text || text != "" && strings.Contains(message, text)
	})
}

// reports waits for a number of reports.
func (r *recorder) wait(t *testing.T, n int) (list []loadreport.Report) {
	t.Helper()
	r.until(t, func(all []loadreport.Report, _ string) bool {
		list = all
		return len(all) >= n
	})
	return list
}

func values(reports []loadreport.Report) map[string]float64 {
	got := map[string]float64{}
	for _, r := range reports {
		for _, v := range []float64{r.CPU, r.InFlight, r.Custom} {
			if !math.IsNaN(v) {
				got[r.Endpoint] = v
			}
		}
	}
	return got
}
