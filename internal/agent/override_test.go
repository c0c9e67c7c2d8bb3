// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/routing"
)

// TestOverride goes through all of it during a migration that sends half of the keys to the candidate.
func TestOverride(t *testing.T) {
	dir := t.TempDir()
	publishFile(t, dir, routing.File{Generation: 1, Split: &routing.Split{BasisPoints: map[string]int{"*": 5000}}}, names(t, "one"), names(t, "two"))
	_, base := serveDir(t, dir)
	roles := func() string {
		t.Helper()
		seen := map[string]bool{}
		for _, key := range strings.Fields("a b c d e f g h i j k l m n o p") {
			seen[get(t, base+"/v1/lookup?key="+key).object(t)["role"].(string)] = true
		}
		switch {
		case seen["stable"] && seen["candidate"]:
			return "both"
		case seen["stable"]:
			return "stable"
		default:
			return "candidate"
		}
	}
	steps := []struct{ method, body, want, roles string }{
		{"GET", "", "", "both"},
		{"PUT", `{"ring":"stable"}`, "stable", "stable"},
		{"GET", "", "stable", "stable"},
		{"PUT", `{"ring":"candidate"}`, "candidate", "candidate"},
		{"DELETE", "", "", "both"},
		{"GET", "", "", "both"},
	}
	for _, step := range steps {
		got := send(t, step.method, base+"/v1/override", step.body, nil)
		if got.status != http.StatusOK || got.object(t)["ring"] != step.want {
			t.Errorf("%s %s: %d %s", step.method, step.body, got.status, got.body)
		}
		if now := roles(); now != step.roles {
			t.Errorf("%s %s: %s answer, want %s", step.method, step.body, now, step.roles)
		}
		status := get(t, base+"/v1/status").object(t)
		forced, _ := status["forced"].(string)
		warned := strings.Contains(get(t, base+"/v1/status").body, "the split is overridden: "+step.want)
		if forced != step.want || warned != (step.want != "") || status["basisPoints"] != 5000.0 {
			t.Errorf("%s %s: status says %v", step.method, step.body, status)
		}
	}
}

// TestOverrideWithoutCandidate: the status says that it has no effect.
func TestOverrideWithoutCandidate(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	_, base := serveDir(t, dir)
	send(t, http.MethodPut, base+"/v1/override", `{"ring":"candidate"}`, nil)
	checkProbe(t, base+"/v1/lookup?key=a", http.StatusOK, `"role":"stable"`)
	checkProbe(t, base+"/v1/status", http.StatusOK, "the override has no effect: there is no candidate")
}

func TestOverrideProblems(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	_, base := serveDir(t, dir)
	good := `{"ring":"stable"}`
	for name, tc := range map[string]struct {
		method, body string
		header       map[string]string
		status       int
		field        string
	}{
		"nothing":               {"PUT", "", nil, 400, "body"},
		"no JSON":               {"PUT", "stable", nil, 400, "body"},
		"no such ring":          {"PUT", `{"ring":"both"}`, nil, 400, "ring"},
		"no ring":               {"PUT", `{}`, nil, 400, "ring"},
		"unknown member":        {"PUT", `{"ring":"stable","for":"1h"}`, nil, 400, "body"},
		"something behind it":   {"PUT", good + good, nil, 400, "body"},
		"too long":              {"PUT", strings.Repeat(" ", 1<<10) + good, nil, 400, "body"},
		"another host":          {"PUT", good, map[string]string{"Host": "rebound.example:9464"}, 403, "Host"},
		"another address":       {"PUT", good, map[string]string{"Host": "10.0.0.1"}, 403, "Host"},
		"another host, deleted": {"DELETE", "", map[string]string{"Host": "rebound.example"}, 403, "Host"},
		"by a browser":          {"PUT", good, map[string]string{"Origin": "http://localhost:9464"}, 403, "Origin"},
		"by a browser, deleted": {"DELETE", "", map[string]string{"Origin": "null"}, 403, "Origin"},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, tc.method, base+"/v1/override", tc.body, tc.header)
			if body := got.object(t); got.status != tc.status || body["field"] != tc.field {
				t.Errorf("%d %s, want %d of %s", got.status, got.body, tc.status, tc.field)
			}
			if now := get(t, base+"/v1/override").object(t)["ring"]; now != "" {
				t.Errorf("it overrides with %v", now)
			}
		})
	}
	for _, host := range []string{"localhost", "LocalHost:9464", "127.0.0.1", "127.1.2.3:80", "[::1]:9464", "[::1]"} {
		if got := send(t, http.MethodPut, base+"/v1/override", good, map[string]string{"Host": host}); got.status != http.StatusOK {
			t.Errorf("host %s: %d %s", host, got.status, got.body)
		}
	}
}
