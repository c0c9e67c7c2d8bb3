// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// fields are the names that a file can have, with the names around them. Below those that end in a dot any name can be.
var fields = []string{
	"apiVersion", "ring", "uid", "generation", "leaderEpoch", "stable", "candidate", "split", "addresses", "down", "checksum",
	"stable.slot", "stable.digest", "stable.version", "stable.revision", "stable.chunks",
	"candidate.slot", "candidate.digest", "candidate.version", "candidate.revision", "candidate.chunks",
	"split.seed", "split.basisPoints",
}

// free are the objects whose names are those of backends and datacenters.
var free = []string{"addresses", "split.basisPoints"}

// notZero are what is left out where it would be zero.
var notZero = []string{"stable.chunks", "candidate.chunks", "checksum"}

// checkForm refuses what package encoding/json takes and other parsers do not, or not in the same way: a name that is there twice or in other
// letters, null, half a surrogate pair. The data is JSON of the right types.
func checkForm(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	f := form{decoder: json.NewDecoder(bytes.NewReader(data)), seen: map[string]bool{}, replaced: bytes.Contains(data, []byte(replacement))}
	f.decoder.UseNumber()
	if err := f.value("", false); err != nil {
		return err
	}
	if f.seen["split"] && !f.seen["split.seed"] {
		return errors.New("split.seed is missing")
	}
	return nil
}

// replacement is what package encoding/json makes of half a surrogate pair.
const replacement = "\ufffd"

type form struct {
	decoder *json.Decoder
	seen    map[string]bool
	// replaced says that the data has a replacement character of its own.
	replaced bool
}

// value reads a value. Free says that it is one of an object whose names can be any.
func (f *form) value(path string, isFree bool) error {
	token, err := f.decoder.Token()
	if err != nil {
		return err
	}
	if text, ok := token.(string); ok && !f.whole(text) {
		return fmt.Errorf("%s is %q, with half a surrogate pair", path, text)
	}
	zero := token == json.Number("0") || token == ""
	switch {
	case token == nil:
		return fmt.Errorf("%s is null", path)
	case token == json.Delim('{'):
		return f.object(path)
	case token == json.Delim('['):
		for f.decoder.More() {
			if err := f.value(path+"[]", true); err != nil {
				return err
			}
		}
		_, err = f.decoder.Token()
		return err
	case zero && !isFree && slices.Contains(notZero, path):
		return fmt.Errorf("%s is %q: it is left out then", path, token)
	}
	return nil
}

// whole says that a text has no half of a surrogate pair.
func (f *form) whole(text string) bool { return f.replaced || !strings.Contains(text, replacement) }

func (f *form) object(path string) error {
	isFree, prefix := slices.Contains(free, path), ""
	if path != "" {
		prefix = path + "."
	}
	names := map[string]bool{}
	for f.decoder.More() {
		token, err := f.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // Nothing else can be there.
		switch {
		case !f.whole(name):
			return fmt.Errorf("%s%s has half a surrogate pair", prefix, name)
		case names[name]:
			return fmt.Errorf("%s%s is there twice", prefix, name)
		case !isFree && !slices.Contains(fields, prefix+name):
			return fmt.Errorf("unknown field %q", prefix+name)
		}
		names[name] = true
		f.seen[prefix+name] = true
		if err := f.value(prefix+name, isFree); err != nil {
			return err
		}
	}
	if _, err := f.decoder.Token(); err != nil && err != io.EOF {
		return err
	}
	return nil
}
