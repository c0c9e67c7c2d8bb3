// SPDX-License-Identifier: Apache-2.0

package routing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ringwright/ringwright/pkg/routing"
)

// FuzzParse: what is accepted can be written, and says the same when it is read again.
func FuzzParse(f *testing.F) {
	for _, file := range []routing.File{file(), migrating()} {
		text, err := file.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add([]byte(unsealed(text)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		parsed, err := routing.Parse(text)
		if err != nil {
			return
		}
		encoded, err := parsed.Encode()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := routing.Parse(encoded)
		if diff := cmp.Diff(parsed, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("read again: %v\n%s", err, diff)
		}
	})
}
