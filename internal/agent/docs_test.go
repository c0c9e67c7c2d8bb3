// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/internal/testenv/golden"
	"github.com/ringwright/ringwright/pkg/routing"
)

// page is documentation and its own golden file: after a change, go test ./internal/agent -update writes what the examples print.
const page = "../../docs/agent.md"

// TestDocumentedExamples runs the examples of the page against an agent in the middle of a migration.
func TestDocumentedExamples(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir, socket := t.TempDir(), filepath.Join(t.TempDir(), "agent.sock")
	publishFile(t, dir, routing.File{
		Generation: 41, LeaderEpoch: 12, Split: &routing.Split{Seed: 7, BasisPoints: map[string]int{"*": 0, "lab01": 5000}},
		Addresses: map[string]string{"cache-1": "10.0.0.1:8080", "cache-2": "10.0.0.2:8080", "cache-3": "10.0.0.3:8080"},
	}, names(t, "cache-1", "cache-2"), names(t, "cache-1", "cache-2", "cache-3"))
	r := start(t, agent.Config{Dir: dir, Datacenter: "lab01", StatusListen: "127.0.0.1:0", UnixSocket: socket})
	example := &examples{hosts: strings.NewReplacer("localhost:9464", r.url("local"), "localhost:9465", r.url("status")), socket: socket}
	golden.Assert(t, page, []byte(example.run(t, string(text))))
	r.end(t)
}

// examples runs the commands of a page.
type examples struct {
	hosts  *strings.Replacer
	socket string
}

// run returns the page with the output of every command in place of what is there.
func (e *examples) run(t *testing.T, page string) string {
	var out strings.Builder
	inExample := false
	for line := range strings.Lines(page) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inExample = line == "```console\n"
			out.WriteString(line)
		case !inExample:
			out.WriteString(line)
		case isCommand:
			out.WriteString(line + e.curl(t, strings.TrimSpace(command)))
		}
	}
	return out.String()
}

// word is a word of a command, or one in quotes.
var word = regexp.MustCompile(`'[^']*'|\S+`)

// curl does what the program of that name does, as far as the page needs it. What follows it in a pipe is jq or grep.
func (e *examples) curl(t *testing.T, command string) string {
	t.Helper()
	command, filter, _ := strings.Cut(command, " | ")
	words := word.FindAllString(command, -1)
	if words[0] != "curl" {
		t.Fatalf("the page has the command %s", words[0])
	}
	method, body, url, showStatus, overSocket := "GET", "", "", false, false
	header := map[string]string{}
	for i := 1; i < len(words); i++ {
		value := ""
		if i+1 < len(words) {
			value = strings.Trim(words[i+1], "'")
		}
		switch words[i] {
		case "-s":
			continue
		case "-X":
			method = value
		case "-d":
			if body = value; method == "GET" {
				method = "POST"
			}
		case "-H":
			name, text, _ := strings.Cut(value, ": ")
			header[name] = text
		case "-w":
			showStatus = value == `%{http_code}\n`
		case "--unix-socket":
			overSocket = true
		default:
			url = e.hosts.Replace(strings.Trim(words[i], "'"))
			continue
		}
		i++
	}
	var got response
	ask := func(t *testing.T) { got = send(t, method, url, body, header) }
	if overSocket {
		t.Run("over the Unix socket", func(t *testing.T) { overUnix(t, e.socket); ask(t) })
	} else {
		ask(t)
	}
	output := steady(filtered(t, got.body, filter))
	if showStatus {
		output += fmt.Sprintln(got.status)
	}
	return output
}

// filtered returns what a filter makes of text.
func filtered(t *testing.T, text, filter string) string {
	t.Helper()
	pattern, isGrep := strings.CutPrefix(filter, "grep ^")
	switch {
	case filter == "":
		return text
	case filter == "jq .":
		var out bytes.Buffer
		if err := json.Indent(&out, []byte(text), "", "  "); err != nil {
			t.Fatal(err)
		}
		return out.String()
	case isGrep:
		var out strings.Builder
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, pattern) {
				out.WriteString(line)
			}
		}
		return out.String()
	default:
		t.Fatalf("the page has the filter %q", filter)
		return ""
	}
}

// steady puts the same in place of what differs from run to run.
func steady(text string) string {
	for pattern, replacement := range map[string]string{
		`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`: "2026-12-01T09:00:00Z",
		`"loadSeconds": [0-9.e-]+`:                `"loadSeconds": 0.002`,
		`"bytesHeld": \d+`:                        `"bytesHeld": 4096`,
		`"go": "[^"]+"`:                           `"go": "go1.26"`,
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, replacement)
	}
	return text
}

// TestDocumentedFlags: the page has each flag, and no other.
func TestDocumentedFlags(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var help bytes.Buffer
	if code := agent.Main(t.Context(), []string{"--help"}, "", &help, io.Discard); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	flag := regexp.MustCompile(`(?m)^ +--([a-z-]+)`)
	known := map[string]bool{}
	for _, match := range flag.FindAllStringSubmatch(help.String(), -1) {
		known[match[1]] = true
		if strings.HasPrefix(match[1], "proxy-") && match[1] != "proxy-listen" { // They are on a page of their own.
			continue
		}
		if !strings.Contains(string(text), "\n| `--"+match[1]+"` |") {
			t.Errorf("--%s is not in the table of flags", match[1])
		}
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if !known[match[1]] {
			t.Errorf("--%s is in the table and no flag", match[1])
		}
	}
}
