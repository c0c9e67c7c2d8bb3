// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

const (
	// MaxBatchKeys is how many keys one request can have.
	MaxBatchKeys = 1000
	// MaxBodyBytes is how long the body of a request can be.
	MaxBodyBytes = 1 << 20
)

const (
	paramKeys    = "keys"
	paramKeysHex = "keysHex"

	paramsOfBatch = "keys, keysHex, features, n"
	limitOfBatch  = "one of keys, keysHex"
)

// batch is a request for the owners of several keys.
type batch struct {
	body []byte
	// keys are one behind the other; ends says where each ends.
	keys     []byte
	ends     []int
	features []string
	count    int
	answers  batchAnswer
	decoder  jsontext.Decoder
	reader   bytes.Buffer
}

// isSmall says that the memory of a batch may be used again.
func (b *batch) isSmall() bool {
	return cap(b.body) <= maxKeptBytes && cap(b.keys) <= maxKeptBytes && b.answers.isSmall()
}

// key returns one of the keys.
func (b *batch) key(i int) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.keys[start:b.ends[i]]
}

// lookupBatch answers POST /v1/lookup.
func (h *handler) lookupBatch(w http.ResponseWriter, r *http.Request) int {
	if r.URL.RawQuery != "" {
		return badField("a batch is asked for in the body, not in the query string", "", r.URL.RawQuery, paramsOfBatch).write(w)
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	if p := readBody(w, r, &s.batch.body); p != nil {
		return p.write(w)
	}
	if p := s.batch.parse(); p != nil {
		return p.write(w)
	}
	state := h.client.State() // One state for all keys.
	if state == nil {
		return h.notReady().write(w)
	}
	out, err := s.appendBatchAnswer(s.out[:0], state, h.movement)
	if err != nil {
		return lookupProblem(err, s.batch.features).write(w)
	}
	s.out = out
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(out))}
	return writeBody(w, http.StatusOK, out)
}

// readBody reads the body of a request into a buffer that is used again.
func readBody(w http.ResponseWriter, r *http.Request, buf *[]byte) *problem {
	tooLong := func() *problem {
		return badField("the body is too long", "body", "", fmt.Sprintf("%d bytes", MaxBodyBytes)).with(http.StatusRequestEntityTooLarge)
	}
	if r.ContentLength > MaxBodyBytes {
		w.Header().Set("Connection", "close") // The rest of the body is not worth reading.
		return tooLong()
	}
	body := bytes.NewBuffer((*buf)[:0])
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	*buf = body.Bytes()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return tooLong()
	case err != nil:
		return badField("the body did not arrive: "+err.Error(), "body", "", "").with(http.StatusRequestTimeout)
	}
	return nil
}

// parse reads the body. It is strict: what would be read in another way than it was meant is refused, such as a name that is there
// twice, and text that is not UTF-8.
func (b *batch) parse() *problem {
	b.keys, b.ends, b.features, b.count = b.keys[:0], b.ends[:0], b.features[:0], 1
	b.reader = *bytes.NewBuffer(b.body)
	b.decoder.Reset(&b.reader)
	p := b.parseObject()
	switch {
	case p != nil:
		return p
	case len(b.ends) == 0:
		return badField("there are no keys", paramKeys, "", fmt.Sprintf("%s, of 1 to %d keys", limitOfBatch, MaxBatchKeys))
	}
	if _, err := b.decoder.ReadToken(); err != io.EOF {
		return badField("the body goes on behind its object", "body", "", "one JSON object")
	}
	return nil
}

func (b *batch) parseObject() *problem {
	if b.decoder.PeekKind() != '{' {
		if _, err := b.decoder.ReadToken(); err != nil {
			return notJSON(err)
		}
		return badField("the body is no JSON object", "body", "", "a JSON object with "+paramsOfBatch)
	}
	_, _ = b.decoder.ReadToken()
	for b.decoder.PeekKind() == '"' {
		token, err := b.decoder.ReadToken()
		if err != nil {
			return notJSON(err)
		}
		if p := b.parseMember(token.String()); p != nil {
			return p
		}
	}
	if _, err := b.decoder.ReadToken(); err != nil {
		return notJSON(err)
	}
	return nil
}

func (b *batch) parseMember(name string) *problem {
	switch name {
	case paramKeys, paramKeysHex:
		if len(b.ends) > 0 {
			return badField("the keys are given more than once", name, "", limitOfBatch)
		}
		return b.parseStrings(name, func(text []byte) *problem { return b.addKey(name, text) })
	case paramFeatures:
		if p := b.parseStrings(name, func(text []byte) *problem {
			b.features = append(b.features, string(text))
			return nil
		}); p != nil {
			return p
		}
		return checkFeatures(b.features, strings.Join(b.features, ","))
	case paramCount:
		value, err := b.decoder.ReadValue()
		if err != nil {
			return notJSON(err)
		}
		b.count, err = strconv.Atoi(string(value))
		if err != nil || b.count < 1 || b.count > ringclient.MaxOwners {
			return badField("n is not a number within its limits", paramCount, string(value), limitOfCount)
		}
		return nil
	default:
		return badField("unknown member", name, "", paramsOfBatch)
	}
}

// parseStrings reads an array of strings.
func (b *batch) parseStrings(name string, add func(text []byte) *problem) *problem {
	if b.decoder.PeekKind() != '[' {
		return b.wrongKind(name, "an array of strings")
	}
	_, _ = b.decoder.ReadToken()
	var buf [256]byte
	for i := 0; b.decoder.PeekKind() != ']'; i++ {
		if b.decoder.PeekKind() != '"' {
			return b.wrongKind(fmt.Sprintf("%s[%d]", name, i), "a string")
		}
		value, err := b.decoder.ReadValue()
		if err != nil {
			return notJSON(err)
		}
		text, err := jsontext.AppendUnquote(buf[:0], value)
		if err != nil {
			return notJSON(err)
		}
		if p := add(text); p != nil {
			return p
		}
	}
	_, _ = b.decoder.ReadToken()
	return nil
}

func (b *batch) addKey(name string, text []byte) *problem {
	if len(b.ends) == MaxBatchKeys {
		return badField("there are too many keys", name, "", fmt.Sprintf("%d keys", MaxBatchKeys))
	}
	var p *problem
	b.keys, p = appendKey(b.keys, name, text, name == paramKeysHex)
	if p != nil {
		p.Field = fmt.Sprintf("%s[%d]", name, len(b.ends))
		return p
	}
	b.ends = append(b.ends, len(b.keys))
	return nil
}

// wrongKind returns the problem of a value of another kind than it must be.
func (b *batch) wrongKind(field, limit string) *problem {
	value, err := b.decoder.ReadValue()
	if err != nil {
		return notJSON(err)
	}
	return badField("the value is of the wrong kind", field, string(value), limit)
}

func notJSON(err error) *problem {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return badField("the body is not JSON: "+strings.TrimPrefix(err.Error(), "jsontext: "), "body", "", "a JSON object with "+paramsOfBatch)
}
