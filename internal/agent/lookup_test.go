// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TestLookupAnswer pins the form of an answer: programs in other languages read it.
func TestLookupAnswer(t *testing.T) {
	dir := t.TempDir()
	r := names(t, "one")
	publish(t, dir, 41, r)
	_, base := serveDir(t, dir)
	tail := fmt.Sprintf(`"ring":"cdn/edge","generation":41,"leaderEpoch":0,"role":"stable","revision":7,"digest":%q,"version":"V2",`+
		`"failover":false,"owners":[{"id":"one","address":"10.0.0.1:8080","zone":"z1","weight":1}]}`+"\n", r.Digest())
	for name, tc := range map[string]struct{ query, want string }{
		"text":              {"key=abc", `{"key":"abc","keyHash":891568578,` + tail},
		"escaped":           {"key=%3Ca%20b%26c%3E", fmt.Sprintf(`{"key":"<a b&c>","keyHash":%d,`, ring.Hash([]byte("<a b&c>"))) + tail},
		"empty":             {"key=", `{"key":"","keyHash":0,` + tail},
		"hex":               {"keyHex=616263", `{"keyHex":"616263","keyHash":891568578,` + tail},
		"short name of hex": {"hex=6162", fmt.Sprintf(`{"keyHex":"6162","keyHash":%d,`, ring.Hash([]byte("ab"))) + tail},
		"not UTF-8":         {"key=%FF", fmt.Sprintf(`{"keyHex":"ff","keyHash":%d,`, ring.Hash([]byte{0xff})) + tail},
		"feature":           {"key=abc&features=eu", `{"key":"abc","keyHash":891568578,` + tail},
		"more than exist":   {"key=abc&n=64", `{"key":"abc","keyHash":891568578,` + tail},
		"empty features":    {"key=abc&features=", `{"key":"abc","keyHash":891568578,` + tail},
	} {
		t.Run(name, func(t *testing.T) {
			got := get(t, base+"/v1/lookup?"+tc.query)
			if got.status != http.StatusOK {
				t.Errorf("status %d", got.status)
			}
			if diff := cmp.Diff(tc.want, got.body); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("header %v", got.header)
			}
		})
	}
}

// TestLookupOfCandidate: each key is answered by the ring that its bucket gives it to, and the answer says why.
func TestLookupOfCandidate(t *testing.T) {
	dir := t.TempDir()
	stable, candidate := names(t, "one"), names(t, "two")
	split := &routing.Split{Seed: 99, BasisPoints: map[string]int{"*": 0, "lab01": 5000}}
	publishFile(t, dir, routing.File{Generation: 3, LeaderEpoch: 12, Split: split}, stable, candidate)
	_, base := serveDir(t, dir)
	seen := map[string]bool{}
	for i := range 50 {
		key := fmt.Sprintf("key%d", i)
		bucket := routing.Bucket(ring.Hash([]byte(key)), split.Seed)
		role, revision, decided, backend := "stable", 7, stable, `{"id":"one","address":"10.0.0.1:8080","zone":"z1","weight":1}`
		if bucket < 5000 {
			role, revision, decided, backend = "candidate", 8, candidate, `{"id":"two","address":"","zone":"z1","weight":1}`
		}
		seen[role] = true
		want := fmt.Sprintf(`{"key":%q,"keyHash":%d,"ring":"cdn/edge","generation":3,"leaderEpoch":12,"role":%q,"revision":%d,"digest":%q,`+
			`"version":"V2","bucket":%d,"failover":false,"owners":[%s]}`+"\n", key, ring.Hash([]byte(key)), role, revision, decided.Digest(), bucket, backend)
		if diff := cmp.Diff(want, get(t, base+"/v1/lookup?key="+key).body); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	if !seen["stable"] || !seen["candidate"] {
		t.Errorf("only %v answered", seen)
	}
}

// TestLookupFailsOver: the owner is down, and the answer says that another one is meant.
func TestLookupFailsOver(t *testing.T) {
	dir := t.TempDir()
	publishFile(t, dir, routing.File{Generation: 1, Down: []string{"one"}}, names(t, "one", "two"), nil)
	_, base := serveDir(t, dir)
	failovers := 0
	for i := range 50 {
		answer := get(t, fmt.Sprintf("%s/v1/lookup?key=%d", base, i)).object(t)
		if owner := answer["owners"].([]any)[0].(map[string]any)["id"]; owner != "two" {
			t.Fatalf("%v answers", owner)
		}
		if answer["failover"] == true {
			failovers++
		}
	}
	if failovers == 0 || failovers == 50 {
		t.Errorf("%d of 50 are failovers", failovers)
	}
}

func TestLookupOrder(t *testing.T) {
	dir := t.TempDir()
	r := names(t, "one", "two", "three", "four")
	publish(t, dir, 1, r)
	_, base := serveDir(t, dir)
	view, err := r.View()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		key := fmt.Sprintf("key %d", i)
		var want []string
		for _, owner := range view.AppendOwners(nil, ring.Hash([]byte(key)), 3, nil) {
			want = append(want, r.ID(owner))
		}
		answer := get(t, base+"/v1/lookup?n=3&key="+url.QueryEscape(key)).object(t)
		var got []string
		for _, owner := range answer["owners"].([]any) {
			got = append(got, owner.(map[string]any)["id"].(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", key, diff)
		}
	}
}

func TestLookupProblems(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one", "two"))
	_, base := serveDir(t, dir)
	longest := strings.Repeat("k", agent.MaxKeyBytes)
	for name, tc := range map[string]struct {
		query  string
		status int
		field  string
		value  any
		limit  any
	}{
		"no key":                 {"", 400, "key", nil, "one of key, keyHex, hex"},
		"only features":          {"features=eu", 400, "key", nil, "one of key, keyHex, hex"},
		"two keys":               {"key=a&hex=61", 400, "hex", "61", "one of key, keyHex, hex"},
		"key twice":              {"key=a&key=b", 400, "key", "b", "once"},
		"features twice":         {"key=a&features=eu&features=eu", 400, "features", "eu", "once"},
		"n twice":                {"key=a&n=1&n=2", 400, "n", "2", "once"},
		"escaped name":           {"k%65y=a&key=b", 400, "key", "b", "once"},
		"semicolon":              {"key=a;n=2", 400, "", "key=a;n=2", nil},
		"key too long":           {"key=" + longest + "k", 400, "key", longest[:128] + "…", "8192 bytes"},
		"hex key too long":       {"keyHex=" + strings.Repeat("6b", 8193), 400, "keyHex", strings.Repeat("6b", 64) + "…", "8192 bytes"},
		"bad hex":                {"keyHex=6x", 400, "keyHex", "6x", "pairs of hex digits"},
		"odd hex":                {"hex=616", 400, "hex", "616", "pairs of hex digits"},
		"n of nothing":           {"key=a&n=0", 400, "n", "0", "1 to 64"},
		"n too large":            {"key=a&n=65", 400, "n", "65", "1 to 64"},
		"n negative":             {"key=a&n=-1", 400, "n", "-1", "1 to 64"},
		"n empty":                {"key=a&n=", 400, "n", nil, "1 to 64"},
		"n no number":            {"key=a&n=two", 400, "n", "two", "1 to 64"},
		"n beyond any number":    {"key=a&n=99999999999999999999", 400, "n", "99999999999999999999", "1 to 64"},
		"unknown feature":        {"key=a&features=eu,gpu", 400, "features", "gpu", "eu, idle"},
		"nameless feature":       {"key=a&features=eu,", 400, "features", "eu,", "names with commas between them"},
		"too many features":      {"key=a&features=" + strings.Repeat("f,", 64) + "f", 400, "features", strings.Repeat("f,", 64) + "…", "64 features"},
		"misspelt parameter":     {"key=a&feature=eu", 400, "feature", "eu", "key, keyHex, hex, features, n"},
		"query cannot be parsed": {"key=%zz", 400, "", "key=%zz", nil},
		"no backend in the view": {"key=a&features=idle", 503, "features", "idle", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := get(t, base+"/v1/lookup?"+tc.query)
			body := got.object(t)
			if message, _ := body["error"].(string); message == "" {
				t.Errorf("no error in %s", got.body)
			}
			field, _ := body["field"].(string)
			if got.status != tc.status || field != tc.field {
				t.Errorf("status %d, field %q, want %d, %q", got.status, field, tc.status, tc.field)
			}
			if diff := cmp.Diff([]any{tc.value, tc.limit}, []any{body["value"], body["limit"]}); diff != "" {
				t.Errorf("value and limit (-want +got):\n%s", diff)
			}
		})
	}
	if got := get(t, base+"/v1/lookup?key="+longest); got.status != http.StatusOK {
		t.Errorf("a key of %d bytes: %d %s", agent.MaxKeyBytes, got.status, got.body)
	}
	if got := get(t, base+"/v1/lookup?key=a&features="+strings.Repeat("eu,", 63)+"eu"); got.status != http.StatusOK {
		t.Errorf("64 features: %d %s", got.status, got.body)
	}
}

// paths are those of a listener that has all.
const paths = "/v1/lookup, /v1/status, /metrics, /healthz, /readyz, /v1/override"

func TestRoutesProblems(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	_, base := serveDir(t, dir)
	for name, tc := range map[string]struct {
		method, path string
		status       int
		field, limit any
	}{
		"unknown path":          {"GET", "/v1/nothing", 404, "path", paths},
		"root":                  {"GET", "/", 404, "path", paths},
		"unknown path, by POST": {"POST", "/v2/lookup", 404, "path", paths},
		"lookup by PUT":         {"PUT", "/v1/lookup?key=a", 405, "method", "GET, HEAD, POST"},
		"status by DELETE":      {"DELETE", "/v1/status", 405, "method", "GET, HEAD"},
		"metrics by PUT":        {"PUT", "/metrics", 405, "method", "GET, HEAD"},
		"override by POST":      {"POST", "/v1/override", 405, "method", "GET, HEAD, PUT, DELETE"},
		"lookup with a slash":   {"GET", "/v1/lookup/?key=a", 404, "path", paths},
	} {
		t.Run(name, func(t *testing.T) {
			got := request(t, tc.method, base+tc.path)
			body := got.object(t)
			if got.status != tc.status || body["field"] != tc.field || body["limit"] != tc.limit || body["error"] == nil {
				t.Errorf("status %d, %s", got.status, got.body)
			}
			if allow := got.header.Get("Allow"); (tc.status == 405) != (allow != "" && allow == tc.limit) {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
	if got := request(t, http.MethodHead, base+"/v1/lookup?key=a"); got.status != http.StatusOK || got.body != "" {
		t.Errorf("HEAD: %d %q", got.status, got.body)
	}
}
