// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
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
	// Field is the query parameter at fault, cut off after maxEchoBytes; "" where there is none.
	Field string `json:"field,omitempty"`
	// Value is what was given there, cut off after maxEchoBytes.
	Value string `json:"value,omitempty"`
	// Limit is what would have been taken.
	Limit string `json:"limit,omitempty"`
}

// badField returns the problem of a query parameter that cannot be used.
func badField(message, field, value, limit string) *problem {
	return &problem{status: http.StatusBadRequest, Error: message, Field: echo(field), Value: echo(value), Limit: limit}
}

// echo cuts off what comes from a request.
func echo(text string) string {
	if len(text) > maxEchoBytes {
		return strings.ToValidUTF8(text[:maxEchoBytes], "") + "…"
	}
	return text
}

func (p *problem) write(w http.ResponseWriter) { writeJSON(w, p.status, p) }

// writeJSON answers with a JSON object and a line feed. What a ring answers now it need not answer later, so that nothing
// on the way may keep it.
func writeJSON(w http.ResponseWriter, status int, body any) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil { // Only a type that JSON cannot express gets here.
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // A caller that has gone needs no answer.
}
