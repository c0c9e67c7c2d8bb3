// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/agent"
)

func TestMainReadsFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":             {[]string{"--help"}, 0, "--listen", ""},
		"version":          {[]string{"--version"}, 0, "v9\n", ""},
		"no directory":     {nil, 2, "", "--dir is missing"},
		"unknown flag":     {[]string{"--what"}, 2, "", "unknown flag: --what"},
		"argument":         {[]string{"--dir=x", "y"}, 2, "", `unexpected argument "y"`},
		"log format":       {[]string{"--dir=x", "--log-format=xml"}, 2, "", `--log-format is "xml", not json or text`},
		"log level":        {[]string{"--dir=x", "--log-level=loud"}, 2, "", `--log-level is "loud", not debug, info, warn or error`},
		"poll too often":   {[]string{"--dir=x", "--poll-interval=9ms"}, 2, "", "--poll-interval is 9ms, not at least 10ms"},
		"cannot listen":    {[]string{"--dir=x", "--listen=nowhere"}, 1, "", "listening on nowhere"},
		"logs durations":   {[]string{"--dir=x", "--listen=127.0.0.1:0", "--shutdown-timeout=1500ms"}, 0, "", `"delay":"0s","timeout":"1.5s"`},
		"stops cleanly":    {[]string{"--dir=x", "--listen=127.0.0.1:0"}, 0, "", `"msg":"stopping"`},
		"logs in text":     {[]string{"--dir=x", "--listen=127.0.0.1:0", "--log-format=text"}, 0, "", "msg=stopping"},
		"warns of others":  {[]string{"--dir=x", "--listen=:0"}, 0, "", "listening beyond loopback"},
		"no such force":    {[]string{"--dir=x", "--force=both"}, 2, "", `--force is "both", not stable or candidate`},
		"forced":           {[]string{"--dir=x", "--listen=127.0.0.1:0", "--force=stable"}, 0, "", `"msg":"override from the start","ring":"stable"`},
		"no octal mode":    {[]string{"--dir=x", "--unix-socket-mode=rw"}, 2, "", `--unix-socket-mode is "rw", not an octal number up to 0777`},
		"sticky mode":      {[]string{"--dir=x", "--unix-socket-mode=1777"}, 2, "", `--unix-socket-mode is "1777", not an octal number up to 0777`},
		"mode of nothing":  {[]string{"--dir=x", "--unix-socket-mode=0"}, 2, "", `--unix-socket-mode is "0", not an octal number up to 0777`},
		"datacenter":       {[]string{"--dir=x", "--datacenter=*"}, 2, "", `--datacenter is "*"`},
		"logs errors only": {[]string{"--dir=x", "--listen=127.0.0.1:0", "--log-level=error"}, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // An agent that starts stops at once.
			var stdout, stderr bytes.Buffer
			code := agent.Main(ctx, tc.args, "v9", &stdout, &stderr)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			checkOutput(t, "stdout", stdout.String(), tc.stdout)
			checkOutput(t, "stderr", stderr.String(), tc.stderr)
		})
	}
}

// checkOutput compares what was printed with a part of it; "" means that nothing may be printed.
func checkOutput(t *testing.T, name, got, part string) {
	t.Helper()
	if part == "" && got != "" || !strings.Contains(got, part) {
		t.Errorf("%s is %q, want %q in it", name, got, part)
	}
}
