// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// MaxKeyBytes is how long the key of a lookup can be.
const MaxKeyBytes = 8 << 10

const (
	paramKey      = "key"
	paramKeyHex   = "keyHex"
	paramHex      = "hex" // The short form of keyHex.
	paramFeatures = "features"
	paramCount    = "n"

	paramsOfLookup = "key, keyHex, hex, features, n"
	limitOfKeys    = "one of key, keyHex, hex"
)

// query is what a lookup asks for.
type query struct {
	key []byte
	// isHex says that the key was given in hex.
	isHex    bool
	features []string
	count    int
}

// parseQuery reads the query string of a lookup into q, whose slices it uses again. It refuses a parameter that it does not know: a
// misspelt "features" would otherwise be answered with a backend that may not have the key.
func (q *query) parse(raw string) *problem {
	q.key, q.features, q.isHex, q.count = q.key[:0], q.features[:0], false, 1
	keyFrom, hasFeatures, hasCount := "", false, false
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, p := unescape(part, raw)
		if p != nil {
			return p
		}
		switch name {
		case paramKey, paramKeyHex, paramHex:
			if keyFrom == name {
				return repeated(name, value)
			}
			if keyFrom != "" {
				return badField("the key is given more than once", name, value, limitOfKeys)
			}
			keyFrom = name
			p = q.readKey(name, value)
		case paramFeatures:
			if hasFeatures {
				return repeated(name, value)
			}
			hasFeatures = true
			p = q.readFeatures(value)
		case paramCount:
			if hasCount {
				return repeated(name, value)
			}
			hasCount = true
			p = q.readCount(value)
		default:
			return badField("unknown parameter", name, value, paramsOfLookup)
		}
		if p != nil {
			return p
		}
	}
	if keyFrom == "" {
		return badField("the key is missing", paramKey, "", limitOfKeys)
	}
	return nil
}

// unescape returns the name and the value of a parameter.
func unescape(part, raw string) (name, value string, p *problem) {
	name, value, _ = strings.Cut(part, "=")
	if strings.Contains(part, ";") { // Some programs separate parameters by it.
		return "", "", badField("the query string cannot be parsed: it has a semicolon that is not escaped", "", raw, "")
	}
	name, err := url.QueryUnescape(name)
	if err == nil {
		value, err = url.QueryUnescape(value)
	}
	if err != nil {
		return "", "", badField("the query string cannot be parsed: "+err.Error(), "", raw, "")
	}
	return name, value, nil
}

func repeated(name, value string) *problem {
	return badField("the parameter is given more than once", name, value, "once")
}

// readKey takes a key that is there and empty: it has a place on the ring as any other.
func (q *query) readKey(name, text string) *problem {
	q.isHex = name != paramKey
	var p *problem
	q.key, p = appendKey(q.key, name, text, q.isHex)
	return p
}

// appendKey appends a key that is given as text or in hex.
func appendKey[T string | []byte](dst []byte, name string, text T, isHex bool) ([]byte, *problem) {
	before := len(dst)
	if isHex {
		decoded, err := hex.AppendDecode(dst, []byte(text))
		if err != nil {
			return dst, badField("the key is not in hex: "+err.Error(), name, string(text), "pairs of hex digits")
		}
		dst = decoded
	} else {
		dst = append(dst, text...)
	}
	if n := len(dst) - before; n > MaxKeyBytes {
		return dst[:before], badField(fmt.Sprintf("the key has %d bytes", n), name, string(text), fmt.Sprintf("%d bytes", MaxKeyBytes))
	}
	return dst, nil
}

func (q *query) readFeatures(text string) *problem {
	if text == "" {
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		q.features = append(q.features, name)
	}
	return checkFeatures(q.features, text)
}

// checkFeatures says whether the features, which were given as text, can be asked for.
func checkFeatures(features []string, text string) *problem {
	if len(features) > ring.MaxFeatures {
		message := fmt.Sprintf("%d features are named", len(features))
		return badField(message, paramFeatures, text, fmt.Sprintf("%d features", ring.MaxFeatures))
	}
	if slices.Contains(features, "") {
		return badField("a feature has no name", paramFeatures, text, "names with commas between them")
	}
	return nil
}

func (q *query) readCount(text string) *problem {
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 || count > ringclient.MaxOwners {
		return badField("n is not a number within its limits", paramCount, text, limitOfCount)
	}
	q.count = count
	return nil
}

// limitOfCount says how many backends a lookup can ask for.
var limitOfCount = fmt.Sprintf("1 to %d", ringclient.MaxOwners)
