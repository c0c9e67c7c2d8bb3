// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// maxEchoBytes is how much of a bad value an error repeats.
const maxEchoBytes = 128

// problem is the JSON body of every error.
type problem struct {
	status int
	// Error says in words what is wrong.
	Error string `json:"error"`
	// Field is the parameter at fault, cut off after maxEchoBytes; "" where there is none.
	Field string `json:"field,omitempty"`
	// Value is what was given there, cut off after maxEchoBytes.
	Value string `json:"value,omitempty"`
	// Limit is what would have been taken.
	Limit string `json:"limit,omitempty"`
}

// badField returns the problem of a parameter that cannot be used.
func badField(message, field, value, limit string) *problem {
	return &problem{status: http.StatusBadRequest, Error: message, Field: echo(field), Value: echo(value), Limit: limit}
}

// with returns the problem under another status.
func (p *problem) with(status int) *problem {
	p.status = status
	return p
}

// echo cuts off what comes from a request.
func echo(text string) string {
	if len(text) > maxEchoBytes {
		return strings.ToValidUTF8(text[:maxEchoBytes], "") + "…"
	}
	return text
}

// text says the problem in a line, for callers that get no JSON.
func (p *problem) text() string {
	text := p.Error
	if p.Field != "" {
		text += ": " + p.Field
		if p.Value != "" {
			text += fmt.Sprintf(" is %q", p.Value)
		}
	}
	if p.Limit != "" {
		text += "; the limit is: " + p.Limit
	}
	return text
}

// write answers with the problem and returns its status.
func (p *problem) write(w http.ResponseWriter) int { return writeJSON(w, p.status, p) }

// The values of headers that most answers have. They are shared and never changed.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
)

// writeJSON answers with a JSON object and a line feed, and returns the status.
func writeJSON(w http.ResponseWriter, status int, body any) int {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil { // Only a type that JSON cannot express gets here.
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return http.StatusInternalServerError
	}
	return writeBody(w, status, out.Bytes())
}

// writeBody answers with what is JSON. What a ring answers now it need not answer later, so that nothing on the way may keep it.
func writeBody(w http.ResponseWriter, status int, body []byte) int {
	header := w.Header()
	header["Content-Type"], header["Cache-Control"] = jsonType, noStore
	w.WriteHeader(status)
	_, _ = w.Write(body) // A caller that has gone needs no answer.
	return status
}
