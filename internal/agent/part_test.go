// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/internal/agentapi"
	"github.com/ringwright/ringwright/internal/nginxconf"
)

// TestPartsFlags: what is wrong with a flag of a part is told before anything starts.
func TestPartsFlags(t *testing.T) {
	for name, row := range map[string]struct{ args, want string }{
		"source":           {"--source=file", `--source is "file", not dir or api`},
		"no ring":          {"--source=api", "--hashring is missing"},
		"ring of a mount":  {"--hashring=cdn/edge", `--hashring is "cdn/edge", which is for --source=api`},
		"NGINX key":        {"--nginx-output=f --nginx-hash=x", `--nginx-hash is "x"`},
		"no output":        {"--nginx-pid=p", "--nginx-pid is given without --nginx-output"},
		"two ways to tell": {"--nginx-output=f --nginx-pid=p --nginx-reload-command=c", "--nginx-pid and --nginx-reload-command"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			args := append([]string{"--dir=/nonexistent"}, strings.Fields(row.args)...)
			if code := agent.Main(t.Context(), args, "", &stderr, &stderr); code != 2 || !strings.Contains(stderr.String(), row.want) {
				t.Errorf("exit code %d: %s", code, &stderr)
			}
		})
	}
}

// TestNGINXPart: an agent with an output for NGINX writes it, and says in status and metrics how that goes.
func TestNGINXPart(t *testing.T) {
	dir, output := t.TempDir(), filepath.Join(t.TempDir(), "ring.conf")
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	config := agent.Config{
		Dir: dir, Listen: "127.0.0.1:0", NGINX: nginxconf.Config{Output: output},
		Listening: func(_ string, addr net.Addr) { listening <- "http://" + addr.String() },
	}
	go func() { ended <- agent.Run(ctx, config) }()
	base := <-listening
	publish(t, dir, 1, names(t, "one")) // It is of V2, which NGINX cannot place.
	eventually(t, "the warning", func() bool {
		return strings.Contains(get(t, base+"/v1/status").body, "--nginx-output: what NGINX has is not the ring: the algorithm is V2")
	})
	checkProbe(t, base+"/metrics", http.StatusOK, "ringwright_agent_nginx_current 0")
	var status agentapi.Status
	if err := json.Unmarshal([]byte(get(t, base+agentapi.StatusPath).body), &status); err != nil {
		t.Fatal(err)
	}
	if got := status.NotApplied; !strings.HasPrefix(got, "NGINX does not have the ring: the algorithm is V2") {
		t.Errorf("notApplied is %q", got)
	}
	if _, err := os.Stat(output); err == nil {
		t.Error("the file was written")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
}
