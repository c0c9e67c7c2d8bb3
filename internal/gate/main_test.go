// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain ends the Prometheus of the tests, and looks for goroutines that they left.
func TestMain(m *testing.M) {
	code := m.Run()
	if realPrometheus.stop != nil {
		realPrometheus.stop()
	}
	if err := goleak.Find(goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
