// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain looks for goroutines that tests left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
