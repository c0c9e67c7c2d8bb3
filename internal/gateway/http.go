// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/orca"
)

const (
	// Path is where reports are posted.
	Path = "/v1/load"
	// WindowHeader is the header for the window, as a Go duration; so is the parameter "window".
	WindowHeader = "Ringwright-Window"
)

// Handler answers POST /v1/load, with authentication: 200 with the interval until the next report, 400, 401, 404, 405, 413, 415, or 429 and
// 503 with Retry-After.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, g.options.Authenticator.Middleware(http.HandlerFunc(g.serve)))
	return mux
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	interval, err := g.pushHTTP(w, r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err == nil {
		_ = json.NewEncoder(w).Encode(map[string]string{"interval": seconds(interval)})
		return
	}
	p := &problem{kind: invalid, text: err.Error()}
	errors.As(err, &p)
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": p.text})
}

// seconds returns a duration as JSON has those of protobuf.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }

func (g *Gateway) pushHTTP(w http.ResponseWriter, r *http.Request) (time.Duration, error) {
	window, err := windowOf(r)
	if err != nil {
		return 0, g.refusedBy(err)
	}
	return g.push(r.Context(), pushed{window: window, read: func() (*orcav3.OrcaLoadReport, error) { return readBody(w, r) }})
}

// windowOf returns what a request says of its window; 0 where it says nothing.
func windowOf(r *http.Request) (time.Duration, error) {
	text := r.Header.Get(WindowHeader)
	if text == "" {
		text = r.URL.Query().Get("window")
	}
	if text == "" {
		return 0, nil
	}
	window, err := time.ParseDuration(text)
	if err != nil {
		return 0, badWindow(fmt.Sprintf("%.40q", text))
	}
	return window, checkWindow(window)
}

func checkWindow(window time.Duration) error {
	if window <= 0 || window > loadreport.MaxWindow {
		return badWindow(window.String())
	}
	return nil
}

func badWindow(value string) error {
	return &loadreport.Error{Reason: loadreport.BadWindow, Field: "window", Value: value,
		Limit: fmt.Sprintf("a duration such as 5s, more than 0s and at most %s", loadreport.MaxWindow)}
}

// readBody decodes a report.
func readBody(w http.ResponseWriter, r *http.Request) (*orcav3.OrcaLoadReport, error) {
	decode := unmarshal
	switch t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case err == nil && t == "application/json":
		decode = unmarshalJSON
	case err == nil && (t == "application/x-protobuf" || t == "application/protobuf"):
	default:
		return nil, &problem{kind: wrongType, reason: loadreport.Malformed,
			text: fmt.Sprintf("Content-Type must be application/json or application/x-protobuf; got %.60q", r.Header.Get("Content-Type"))}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, orca.MaxBytes))
	if errors.As(err, new(*http.MaxBytesError)) {
		return nil, sizeProblem("the body", "more")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	return decode(body)
}

func sizeProblem(field, value string) *problem {
	return &problem{kind: tooLarge, reason: loadreport.TooLarge, text: fmt.Sprintf("%s must have at most %d bytes; got %s", field, orca.MaxBytes, value)}
}

func unmarshal(body []byte) (*orcav3.OrcaLoadReport, error) {
	report := &orcav3.OrcaLoadReport{}
	if err := proto.Unmarshal(body, report); err != nil {
		return nil, errors.New("the report is no encoded xds.data.orca.v3.OrcaLoadReport")
	}
	return report, nil
}

// unmarshalJSON takes the fields of an OrcaLoadReport, and no others.
func unmarshalJSON(body []byte) (*orcav3.OrcaLoadReport, error) {
	report := &orcav3.OrcaLoadReport{}
	if err := protojson.Unmarshal(body, report); err != nil {
		// The text differs between builds in a space, so that nobody depends on it.
		text := strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"))
		return nil, fmt.Errorf("the report is no OrcaLoadReport in JSON: %.300s", text)
	}
	return report, nil
}
