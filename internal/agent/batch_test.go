// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/hex"
	"encoding/json"
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

func post(t testing.TB, base, body string) response {
	t.Helper()
	return send(t, http.MethodPost, base+"/v1/lookup", body, nil)
}

// TestBatchAnswer pins the form of an answer: programs in other languages read it.
func TestBatchAnswer(t *testing.T) {
	dir := t.TempDir()
	r := names(t, "one", "two")
	publish(t, dir, 41, r)
	_, base := serveDir(t, dir)
	want := fmt.Sprintf(`{"ring":"cdn/edge","generation":41,"leaderEpoch":0,"answers":[`+
		`{"keyHash":891568578,"failover":false,"ring":0,"owners":[0,1]},{"keyHash":4158775611,"failover":false,"ring":0,"owners":[1,0]},`+
		`{"keyHash":891568578,"failover":false,"ring":0,"owners":[0,1]}],`+
		`"rings":[{"role":"stable","revision":7,"digest":%q,"version":"V2"}],"backends":[`+
		`{"id":"two","address":"","zone":"","weight":2},{"id":"one","address":"10.0.0.1:8080","zone":"z1","weight":1}]}`+"\n", r.Digest())
	for name, body := range map[string]string{
		"text": `{"keys":["abc","x1","abc"],"n":2}`,
		"hex":  ` { "n" : 2 , "features":[], "keysHex" : ["616263", "7831", "616263"] } ` + "\n",
	} {
		got := post(t, base, body)
		if diff := cmp.Diff(want, got.body); diff != "" || got.status != http.StatusOK {
			t.Errorf("%s: %d (-want +got):\n%s", name, got.status, diff)
		}
		if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("header %v", got.header)
		}
	}
}

// batchAnswer is how a program reads an answer.
type batchAnswer struct {
	Generation int64
	Answers    []struct {
		KeyHash  uint32
		Bucket   *int
		Failover bool
		Ring     int
		Owners   []int
	}
	Rings    []struct{ Role, Digest string }
	Backends []struct{ ID, Zone string }
}

// TestBatchAnswersAsSingleLookups asks both during a migration, in which backends of one name are on both rings.
func TestBatchAnswersAsSingleLookups(t *testing.T) {
	dir := t.TempDir()
	publishFile(t, dir, routing.File{
		Generation: 3, Down: []string{"three"}, Split: &routing.Split{Seed: 5, BasisPoints: map[string]int{"*": 4000}},
	}, names(t, "one", "two", "three"), names(t, "two", "one", "three", "four"))
	_, base := serveDir(t, dir)
	var keys []string
	for i := range 200 {
		keys = append(keys, hex.EncodeToString([]byte{byte(i), 0xff, byte(i * 7)}))
	}
	body, err := json.Marshal(map[string]any{"keysHex": keys, "n": 2, "features": []string{}})
	if err != nil {
		t.Fatal(err)
	}
	var batch batchAnswer
	if err := json.Unmarshal([]byte(post(t, base, string(body)).body), &batch); err != nil {
		t.Fatal(err)
	}
	if len(batch.Answers) != len(keys) || len(batch.Rings) != 2 {
		t.Fatalf("%d answers of %d rings", len(batch.Answers), len(batch.Rings))
	}
	for i, key := range keys {
		single := get(t, base+"/v1/lookup?n=2&keyHex="+url.QueryEscape(key)).object(t)
		answer := batch.Answers[i]
		var owners []any
		for _, owner := range answer.Owners {
			owners = append(owners, batch.Backends[owner].ID+batch.Backends[owner].Zone)
		}
		var want []any
		for _, owner := range single["owners"].([]any) {
			want = append(want, owner.(map[string]any)["id"].(string)+owner.(map[string]any)["zone"].(string))
		}
		ringOf := batch.Rings[answer.Ring]
		got := []any{float64(answer.KeyHash), float64(*answer.Bucket), answer.Failover, ringOf.Role, ringOf.Digest, owners}
		if diff := cmp.Diff([]any{single["keyHash"], single["bucket"], single["failover"], single["role"], single["digest"], want}, got); diff != "" {
			t.Fatalf("key %s (-single +batch):\n%s", key, diff)
		}
	}
}

func TestBatchProblems(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one", "two"))
	_, base := serveDir(t, dir)
	members := "keys, keysHex, features, n"
	keys := func(n int) string { return `{"keys":[` + strings.Repeat(`"k",`, n-1) + `"k"]}` }
	long := strings.Repeat("k", agent.MaxKeyBytes+1)
	for name, tc := range map[string]struct {
		body   string
		status int
		field  string
		value  any
		limit  any
	}{
		"nothing":              {"", 400, "body", nil, "a JSON object with " + members},
		"no object":            {`["a"]`, 400, "body", nil, "a JSON object with " + members},
		"half an object":       {`{"keys":["a"]`, 400, "body", nil, "a JSON object with " + members},
		"half a string":        {`{"keys":["a`, 400, "body", nil, "a JSON object with " + members},
		"something behind it":  {`{"keys":["a"]} x`, 400, "body", nil, "one JSON object"},
		"a second object":      {`{"keys":["a"]}{}`, 400, "body", nil, "one JSON object"},
		"no keys":              {`{"n":1}`, 400, "keys", nil, "one of keys, keysHex, of 1 to 1000 keys"},
		"an empty list":        {`{"keys":[]}`, 400, "keys", nil, "one of keys, keysHex, of 1 to 1000 keys"},
		"text and hex":         {`{"keys":["a"],"keysHex":["61"]}`, 400, "keysHex", nil, "one of keys, keysHex"},
		"a name twice":         {`{"keys":["a"],"keys":["b"]}`, 400, "body", nil, "a JSON object with " + members},
		"a name in other case": {`{"Keys":["a"]}`, 400, "Keys", nil, members},
		"keys of no list":      {`{"keys":"a"}`, 400, "keys", `"a"`, "an array of strings"},
		"a key of no string":   {`{"keys":["a",7]}`, 400, "keys[1]", "7", "a string"},
		"a key of null":        {`{"keys":[null]}`, 400, "keys[0]", "null", "a string"},
		"a key of no UTF-8":    {"{\"keys\":[\"\xff\"]}", 400, "body", nil, "a JSON object with " + members},
		"half a character":     {`{"keys":["\ud800"]}`, 400, "body", nil, "a JSON object with " + members},
		"a key too long":       {`{"keys":["a","` + long + `"]}`, 400, "keys[1]", long[:128] + "…", "8192 bytes"},
		"a hex key too long":   {`{"keysHex":["` + strings.Repeat("6b", 8193) + `"]}`, 400, "keysHex[0]", strings.Repeat("6b", 64) + "…", "8192 bytes"},
		"bad hex":              {`{"keysHex":["6x"]}`, 400, "keysHex[0]", "6x", "pairs of hex digits"},
		"too many keys":        {keys(1001), 400, "keys", nil, "1000 keys"},
		"n of nothing":         {`{"keys":["a"],"n":0}`, 400, "n", "0", "1 to 64"},
		"n too large":          {`{"keys":["a"],"n":65}`, 400, "n", "65", "1 to 64"},
		"n no whole number":    {`{"keys":["a"],"n":1.5}`, 400, "n", "1.5", "1 to 64"},
		"n in quotes":          {`{"keys":["a"],"n":"1"}`, 400, "n", `"1"`, "1 to 64"},
		"unknown feature":      {`{"keys":["a"],"features":["gpu"]}`, 400, "features", "gpu", "eu, idle"},
		"nameless feature":     {`{"keys":["a"],"features":["eu",""]}`, 400, "features", "eu,", "names with commas between them"},
		"no backend":           {`{"keys":["a"],"features":["idle"]}`, 503, "features", "idle", nil},
		"unknown member":       {`{"keys":["a"],"count":1}`, 400, "count", nil, members},
		"a body too long":      {`{"keys":["` + strings.Repeat("k", 1<<20) + `"]}`, 413, "body", nil, "1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got := post(t, base, tc.body)
			body := got.object(t)
			field, _ := body["field"].(string)
			if got.status != tc.status || field != tc.field || body["error"] == "" {
				t.Errorf("status %d, field %q, want %d, %q: %s", got.status, field, tc.status, tc.field, got.body)
			}
			if diff := cmp.Diff([]any{tc.value, tc.limit}, []any{body["value"], body["limit"]}); diff != "" {
				t.Errorf("value and limit (-want +got):\n%s", diff)
			}
		})
	}
	if got := post(t, base, keys(agent.MaxBatchKeys)); got.status != http.StatusOK {
		t.Errorf("%d keys: %s", agent.MaxBatchKeys, got.body)
	}
	if got := post(t, base, `{"keys":["`+long[1:]+`"]}`); got.status != http.StatusOK {
		t.Errorf("the longest key: %s", got.body)
	}
	if got := post(t, base, keys(1)+strings.Repeat(" ", agent.MaxBodyBytes-len(keys(1)))); got.status != http.StatusOK {
		t.Errorf("the longest body: %s", got.body)
	}
	if got := send(t, http.MethodPost, base+"/v1/lookup?key=a", keys(1), nil); got.status != http.StatusBadRequest {
		t.Errorf("a query string beside a body: %d %s", got.status, got.body)
	}
}

// TestBatchBodyInChunks is too long as well, which is found while it is read.
func TestBatchBodyInChunks(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	_, base := serveDir(t, dir)
	for length, want := range map[int]int{agent.MaxBodyBytes: http.StatusOK, agent.MaxBodyBytes + 1: http.StatusRequestEntityTooLarge} {
		body := `{"keys":["a"]}` + strings.Repeat(" ", length-14)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/lookup", struct{ *strings.Reader }{strings.NewReader(body)})
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = -1
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%d bytes: %d, want %d", length, answer.StatusCode, want)
		}
	}
}

// TestLookupsShareNoMemory runs large and small ones beside each other, whose buffers are used again.
func TestLookupsShareNoMemory(t *testing.T) {
	dir := t.TempDir()
	r := names(t, "one", "two", "three")
	publish(t, dir, 1, r)
	_, base := serveDir(t, dir)
	view, err := r.View()
	if err != nil {
		t.Fatal(err)
	}
	for worker := range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := range 50 {
				key := fmt.Sprintf("%d of %d", i, worker)
				owner, err := view.Owner(ring.Hash([]byte(key)))
				if err != nil {
					t.Fatal(err)
				}
				if got := get(t, base+"/v1/lookup?key="+url.QueryEscape(key)).object(t); got["key"] != key || got["owners"].([]any)[0].(map[string]any)["id"] != r.ID(owner) {
					t.Errorf("%s: %v", key, got)
				}
				var batch batchAnswer
				text := post(t, base, fmt.Sprintf(`{"keys":[%q,"other"]}`, key)).body
				if err := json.Unmarshal([]byte(text), &batch); err != nil || batch.Backends[batch.Answers[0].Owners[0]].ID != r.ID(owner) {
					t.Errorf("%s in a batch: %s, %v", key, text, err)
				}
			}
		})
	}
}
