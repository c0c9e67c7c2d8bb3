// SPDX-License-Identifier: Apache-2.0

package agent

// What the tests of this package reach beside the exported names.
var (
	Serve       = serve
	NewServer   = newServer
	NewRegistry = newRegistry
)

// Complete returns the configuration with defaults.
func (c Config) Complete() (Config, error) { return c.complete() }
