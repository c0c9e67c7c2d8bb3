// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/hex"
	"fmt"
	"maps"
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
)

// query is what a lookup asks for.
type query struct {
	key []byte
	// isHex says that the key was given in hex.
	isHex    bool
	features []string
	count    int
}

// parseQuery reads the query string of a lookup. It refuses a parameter that it does not know: a misspelt "features"
// would otherwise be answered with a backend that may not have the key.
func parseQuery(raw string) (query, *problem) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return query{}, badField("the query string cannot be parsed: "+err.Error(), "", raw, "")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch name {
		case paramKey, paramKeyHex, paramHex, paramFeatures, paramCount:
		default:
			return query{}, badField("unknown parameter", name, values.Get(name), "key, keyHex, hex, features, n")
		}
		if given := values[name]; len(given) > 1 {
			return query{}, badField("the parameter is given more than once", name, given[1], "once")
		}
	}
	q := query{}
	for _, read := range []func(url.Values) *problem{q.readKey, q.readFeatures, q.readCount} {
		if p := read(values); p != nil {
			return query{}, p
		}
	}
	return q, nil
}

// readKey takes a key that is there and empty: it has a place on the ring as any other.
func (q *query) readKey(values url.Values) *problem {
	var given []string
	for _, name := range []string{paramKey, paramKeyHex, paramHex} {
		if values.Has(name) {
			given = append(given, name)
		}
	}
	switch len(given) {
	case 0:
		return badField("the key is missing", paramKey, "", "one of key, keyHex")
	case 1:
	default:
		return badField("the key is given more than once", given[1], values.Get(given[1]), "one of key, keyHex")
	}
	name, text := given[0], values.Get(given[0])
	q.key, q.isHex = []byte(text), name != paramKey
	if q.isHex {
		decoded, err := hex.DecodeString(text)
		if err != nil {
			return badField("the key is not in hex: "+err.Error(), name, text, "pairs of hex digits")
		}
		q.key = decoded
	}
	if len(q.key) > MaxKeyBytes {
		message := fmt.Sprintf("the key has %d bytes", len(q.key))
		return badField(message, name, text, fmt.Sprintf("%d bytes", MaxKeyBytes))
	}
	return nil
}

func (q *query) readFeatures(values url.Values) *problem {
	text := values.Get(paramFeatures)
	if text == "" {
		return nil
	}
	q.features = strings.Split(text, ",")
	if len(q.features) > ring.MaxFeatures {
		message := fmt.Sprintf("%d features are named", len(q.features))
		return badField(message, paramFeatures, text, fmt.Sprintf("%d features", ring.MaxFeatures))
	}
	if slices.Contains(q.features, "") {
		return badField("a feature has no name", paramFeatures, text, "names with commas between them")
	}
	return nil
}

func (q *query) readCount(values url.Values) *problem {
	q.count = 1
	if !values.Has(paramCount) {
		return nil
	}
	text := values.Get(paramCount)
	count, err := strconv.Atoi(text)
	if err != nil || count < 1 || count > ringclient.MaxOwners {
		limit := fmt.Sprintf("1 to %d", ringclient.MaxOwners)
		return badField("n is not a number within its limits", paramCount, text, limit)
	}
	q.count = count
	return nil
}
