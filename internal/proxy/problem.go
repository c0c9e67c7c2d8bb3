// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// maxEchoBytes is how much of a bad value an error repeats.
const maxEchoBytes = 128

// problem is the JSON body of an answer that the proxy gives itself. It looks like those of the agent's lookups.
type problem struct {
	status int
	// reason is the label of the metric.
	reason reason
	// retryAfter is after how many seconds it is worth another try; 0 says nothing of it.
	retryAfter int
	// closes says that the connection cannot be used any more.
	closes bool
	// Error says in words what is wrong.
	Error string `json:"error"`
	// Field is what is at fault: a part of the request, or a flag of the proxy.
	Field string `json:"field,omitempty"`
	// Value is what was found there, cut off after maxEchoBytes.
	Value string `json:"value,omitempty"`
	// Limit is what would have been taken.
	Limit string `json:"limit,omitempty"`
}

// echo cuts off what comes from a request.
func echo(text string) string {
	if len(text) > maxEchoBytes {
		return strings.ToValidUTF8(text[:maxEchoBytes], "") + "…"
	}
	return text
}

// write answers with the problem. Nothing on the way may keep it.
func (p *problem) write(w http.ResponseWriter) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	shown := *p
	shown.Value = echo(p.Value)
	if err := encoder.Encode(shown); err != nil { // Only a type that JSON cannot express gets here.
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.closes {
		header.Set("Connection", "close")
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(out.Bytes()) // A client that has gone needs no answer.
}
