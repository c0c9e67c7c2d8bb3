// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ringwright/ringwright/internal/agent"
)

// FuzzQuery: what is taken is what the standard library reads.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"key=a", "key=a&features=eu,ssd&n=2", "keyHex=ff00&n=64", "&&hex=61&", "key=%3Ca+b%26c%3E", "k%65y=x", "key=a;n=2", "key", "key=a=b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, taken := agent.ParseQuery(raw)
		if !taken {
			return
		}
		values, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatalf("%q is taken: %v", raw, err)
		}
		want := []byte(values.Get("key"))
		if !values.Has("key") {
			want, err = hex.DecodeString(values.Get("keyHex") + values.Get("hex"))
			if err != nil {
				t.Fatal(err)
			}
		}
		if string(want) != string(got.Keys[0]) || strings.Join(got.Features, ",") != values.Get("features") {
			t.Errorf("%q is read as %+v", raw, got)
		}
		if got.Count < 1 || got.Count > 64 || len(got.Keys[0]) > agent.MaxKeyBytes {
			t.Errorf("%q is read as %+v", raw, got)
		}
	})
}

// FuzzBatch: what is taken is what the standard library reads.
func FuzzBatch(f *testing.F) {
	for _, seed := range []string{
		`{"keys":["a","b"],"n":2}`, `{"keysHex":["ff00",""],"features":["eu"]}`, `{"n":1,"keys":["\u00e9\ud83d\ude00\n"]}`,
		`{"keys":["a"],"keys":["b"]}`, `{"keys":["\ud800"]}`, "{\"keys\":[\"\xff\"]}", `{"keys":[null]}`, `{"keys":["a"]}{}`, ` { } `, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, taken := agent.ParseBatch(body)
		if !taken {
			return
		}
		want := struct {
			Keys, KeysHex, Features []string
			N                       *int
		}{}
		if err := json.Unmarshal(body, &want); err != nil || !utf8.Valid(body) {
			t.Fatalf("%q is taken: %v", body, err)
		}
		var keys []string
		for _, key := range got.Keys {
			if want.KeysHex != nil {
				key = hex.AppendEncode(nil, key)
			}
			keys = append(keys, string(key))
		}
		for i := range want.KeysHex {
			want.KeysHex[i] = strings.ToLower(want.KeysHex[i])
		}
		count := 1
		if want.N != nil {
			count = *want.N
		}
		if !slices.Equal(keys, append(want.Keys, want.KeysHex...)) || !slices.Equal(got.Features, want.Features) || got.Count != count {
			t.Errorf("%q is read as %+v", body, got)
		}
		if len(keys) == 0 || len(keys) > agent.MaxBatchKeys || count < 1 || count > 64 {
			t.Errorf("%q is taken", body)
		}
	})
}
