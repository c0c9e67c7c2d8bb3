// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// scrapeInterval is that of the demo: a rate needs two scrapes within a step, and its steps are of seconds.
const scrapeInterval = "500ms"

// findPrometheus looks for a Prometheus, and where there is none it builds one from source.
func (m *migrationDemo) findPrometheus(ctx context.Context) error {
	if path, err := exec.LookPath("prometheus"); err == nil {
		m.server = path
		return nil
	}
	say("There is no prometheus in $PATH: building one from source, which takes minutes the first time",
		"(Debian's is there after: sudo apt-get install prometheus)")
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	m.root, m.server = root, filepath.Join(root, "bin", "prometheus")
	// Nothing is discovered here, and nobody looks at its pages.
	return m.compile(ctx, "-modfile=hack/tools/prometheus/go.mod", "-tags=remove_all_sd", "-o", m.server, "github.com/prometheus/prometheus/cmd/prometheus")
}

// startPrometheus has it read the metrics of all agents.
func (m *migrationDemo) startPrometheus(ctx context.Context) error {
	say("Starting " + m.server + ", which reads the agents' metrics")
	var targets []string
	for _, a := range m.agents {
		targets = append(targets, `"`+a.status+`"`)
	}
	config := fmt.Sprintf("global: {scrape_interval: %s, scrape_timeout: %s}\nscrape_configs:\n- job_name: agents\n  static_configs: [{targets: [%s]}]\n",
		scrapeInterval, scrapeInterval, strings.Join(targets, ", "))
	if err := os.WriteFile(m.path("prometheus.yml"), []byte(config), 0o600); err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	m.prometheus = "http://" + address
	p, err := m.startProgram("prometheus", m.server, "--config.file="+m.path("prometheus.yml"), "--storage.tsdb.path="+m.path("prometheus-data"),
		"--web.listen-address="+address, "--log.level=warn")
	if err != nil {
		return err
	}
	return p.waitReady(ctx, m.prometheus+"/-/ready")
}
