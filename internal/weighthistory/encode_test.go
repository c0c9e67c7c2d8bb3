// SPDX-License-Identifier: Apache-2.0

package weighthistory_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ringwright/ringwright/internal/weighthistory"
)

func record(weights map[string]int32) weighthistory.Record {
	return weighthistory.Record{
		Version: 7, At: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC), Holder: "balancer-0", Reason: "Converged",
		MaxOverAverage: "1.0120", Weights: weights,
	}
}

// manyWeights has n endpoints with UIDs such as pods have, which do not compress.
func manyWeights(n int) map[string]int32 {
	r := rand.New(rand.NewPCG(1, 2))
	weights := make(map[string]int32, n)
	for range n {
		id := fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.Uint32()&0xffff, r.Uint32()&0xfff, r.Uint32()&0xfff, r.Uint64()&0xffffffffffff)
		weights[id] = 1 + r.Int32N(80_000)
	}
	return weights
}

func TestEncodePlain(t *testing.T) {
	raw, err := weighthistory.Encode(record(map[string]int32{"b": 20000, "a": 1, "10.0.0.1:8080": 1_000_000}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"version":7,"at":"2025-03-01T12:00:00Z","holder":"balancer-0","reason":"Converged","maxOverAverage":"1.0120",` +
		`"weights":{"10.0.0.1:8080":1000000,"a":1,"b":20000}}`
	if diff := cmp.Diff(want, string(raw.Raw)); diff != "" {
		t.Error(diff)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 3, 4_000, 8_000, 40_000, weighthistory.MaxWeights} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			in := record(manyWeights(n))
			raw, err := weighthistory.Encode(in)
			if err != nil {
				t.Fatal(err)
			}
			again, err := weighthistory.Encode(in)
			if err != nil || !bytes.Equal(raw.Raw, again.Raw) {
				t.Fatalf("a second encoding differs: %v", err)
			}
			if len(raw.Raw) > weighthistory.MaxBytes {
				t.Fatalf("%d bytes", len(raw.Raw))
			}
			if packed := bytes.Contains(raw.Raw, []byte(`"packed":`)); packed != (n >= 8_000) {
				t.Errorf("packed is %t for %d weights", packed, n)
			}
			out, err := weighthistory.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			if out.Digested != (n == weighthistory.MaxWeights) {
				t.Errorf("digested is %t for %d weights in %d bytes", out.Digested, n, len(raw.Raw))
			}
			for id, want := range in.Weights {
				if got, ok := out.Weight(id); !ok || got != want {
					t.Fatalf("the weight of %s is %d, %t; want %d", id, got, ok, want)
				}
			}
			if _, ok := out.Weight("nobody"); ok {
				t.Error("an endpoint that is not recorded has a weight")
			}
			in.Weights, out.Weights, out.Digested = nil, nil, false
			if diff := cmp.Diff(in, out); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEncodeDigestedAgain(t *testing.T) {
	raw, err := weighthistory.Encode(record(manyWeights(weighthistory.MaxWeights)))
	if err != nil {
		t.Fatal(err)
	}
	read, err := weighthistory.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	again, err := weighthistory.Encode(read)
	if err != nil || !bytes.Equal(raw.Raw, again.Raw) {
		t.Errorf("what was read is not written as it was: %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*weighthistory.Record)
		want   string
	}{
		"version":  {func(r *weighthistory.Record) { r.Version = -1 }, "version must be at least 0; got -1"},
		"at":       {func(r *weighthistory.Record) { r.At = time.Time{} }, "at must be set"},
		"holder":   {func(r *weighthistory.Record) { r.Holder = strings.Repeat("h", 1025) }, "holder must have at most 1024 bytes; got 1025"},
		"reason":   {func(r *weighthistory.Record) { r.Reason = strings.Repeat("h", 1025) }, "reason must have at most 1024 bytes; got 1025"},
		"ratio":    {func(r *weighthistory.Record) { r.MaxOverAverage = strings.Repeat("1", 1025) }, "maxOverAverage must have at most 1024 bytes; got 1025"},
		"empty ID": {func(r *weighthistory.Record) { r.Weights = map[string]int32{"": 1} }, "an ID must have 1 to 253 bytes; got 0"},
		"long ID": {func(r *weighthistory.Record) { r.Weights = map[string]int32{strings.Repeat("i", 254): 1} },
			"an ID must have 1 to 253 bytes; got 254"},
		"weight 0":   {func(r *weighthistory.Record) { r.Weights = map[string]int32{"a": 0} }, `the weight of "a" must be from 1 to 1000000; got 0`},
		"weight 1e6": {func(r *weighthistory.Record) { r.Weights = map[string]int32{"a": 1_000_001} }, `the weight of "a" must be from 1 to 1000000; got 1000001`},
		"many":       {func(r *weighthistory.Record) { r.Weights = manyWeights(100_001) }, "weights must have at most 100000 entries; got 100001"},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(map[string]int32{"a": 10000})
			tc.change(&r)
			if _, err := weighthistory.Encode(r); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	packed := func(text []byte) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return `{"version":1,"at":"2025-03-01T12:00:00Z","packed":"` + base64.StdEncoding.EncodeToString(out.Bytes()) + `"}`
	}
	for name, tc := range map[string]struct{ raw, want string }{
		"nothing":      {"", "unexpected end of JSON input"},
		"no time":      {`{"version":1}`, "at: parsing time"},
		"both":         {`{"version":1,"at":"2025-03-01T12:00:00Z","weights":{"a":1},"packed":"AAAA"}`, "weights and packed are both there"},
		"no gzip":      {`{"version":1,"at":"2025-03-01T12:00:00Z","packed":"AAAA"}`, "packed: "},
		"weight":       {`{"version":1,"at":"2025-03-01T12:00:00Z","weights":{"a":-1}}`, "got -1"},
		"huge weight":  {`{"version":1,"at":"2025-03-01T12:00:00Z","weights":{"a":99999999999}}`, "99999999999"},
		"packed text":  {packed([]byte("weights")), "packed: invalid character"},
		"packed bomb":  {packed(bytes.Repeat([]byte(" "), weighthistory.MaxUnpackedBytes+1)), "packed: it has more than 33554432 bytes"},
		"packed -1":    {packed([]byte(`{"a":-1}`)), "got -1"},
		"packed trunc": {packed([]byte(`{"a":1`)), "packed: unexpected end of JSON input"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := weighthistory.Decode(runtime.RawExtension{Raw: []byte(tc.raw)})
			if !errors.Is(err, weighthistory.ErrMalformed) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestName(t *testing.T) {
	if got := weighthistory.Name("checkout", 12); got != "checkout-weights-12" {
		t.Errorf("got %s", got)
	}
}
