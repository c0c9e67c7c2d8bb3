// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// MaxKeyBytes is how long the key of a request can be: as long as that of a lookup.
const MaxKeyBytes = 8 << 10

// MaxTemplateBytes is how long a key template can be.
const MaxTemplateBytes = 4 << 10

// Template makes the key of a request: text with variables in it, such as "${host}${path}".
type Template struct {
	source   string
	segments []segment
}

// segment is text, or a variable with what stands behind its colon.
type segment struct {
	read     variable // nil for text
	name     string   // "path", "header"
	argument string   // the text, or the argument of the variable
}

// variable appends its value in a request to dst: nothing where there is none.
type variable func(dst []byte, r *http.Request, argument string) []byte

// variables are what can stand in braces. Those with a name behind a colon are in named.
var variables = map[string]variable{
	"path":   func(dst []byte, r *http.Request, _ string) []byte { return append(dst, sentPath(r)...) },
	"uri":    appendURI,
	"host":   func(dst []byte, r *http.Request, _ string) []byte { return append(dst, hostOnly(r.Host)...) },
	"method": func(dst []byte, r *http.Request, _ string) []byte { return append(dst, r.Method...) },
	"client": func(dst []byte, r *http.Request, _ string) []byte { return append(dst, clientIP(r.RemoteAddr)...) },
}

var named = map[string]variable{"header": appendHeader, "cookie": appendCookie, "query": appendQuery}

const variableNames = "${path}, ${uri}, ${host}, ${method}, ${client}, ${header:NAME}, ${cookie:NAME}, ${query:NAME}, and $$ for a dollar"

// TemplateError says where a key template is wrong.
type TemplateError struct {
	// Template is what was given, Position where in it the mistake is, in bytes from 1.
	Template string
	Position int
	// Problem says what is wrong there.
	Problem string
}

// Error names the template, the position and what would have been taken.
func (e *TemplateError) Error() string {
	return fmt.Sprintf("key template %q, position %d: %s; there are %s", e.Template, e.Position, e.Problem, variableNames)
}

// ParseTemplate reads a key template. It has at least one variable: without any, every request would go to one backend. The
// error is a [TemplateError].
func ParseTemplate(source string) (*Template, error) {
	t := &Template{source: source}
	fail := func(position int, format string, a ...any) (*Template, error) {
		return nil, &TemplateError{Template: source, Position: position + 1, Problem: fmt.Sprintf(format, a...)}
	}
	if len(source) > MaxTemplateBytes {
		shown := source[:64] + "…"
		return nil, &TemplateError{shown, MaxTemplateBytes + 1, fmt.Sprintf("it has %d bytes, the limit is %d", len(source), MaxTemplateBytes)}
	}
	hasVariable := false
	for at := 0; at < len(source); {
		dollar := strings.IndexByte(source[at:], '$')
		if dollar < 0 {
			t.text(source[at:])
			break
		}
		t.text(source[at : at+dollar])
		at += dollar
		switch rest := source[at:]; {
		case strings.HasPrefix(rest, "$$"):
			t.text("$")
			at += len("$$")
		case !strings.HasPrefix(rest, "${"):
			return fail(at, "a dollar without braces")
		default:
			end := strings.IndexByte(rest, '}')
			if end < 0 {
				return fail(at, "the brace is not closed")
			}
			s, problem := parseVariable(rest[len("${"):end])
			if problem != "" {
				return fail(at, "%s", problem)
			}
			t.segments = append(t.segments, s)
			hasVariable = true
			at += end + 1
		}
	}
	if !hasVariable {
		return fail(0, "no variable is in it, so that one backend would get every request")
	}
	return t, nil
}

// text adds literal text, in one segment with text before it.
func (t *Template) text(text string) {
	if n := len(t.segments); n > 0 && t.segments[n-1].read == nil {
		t.segments[n-1].argument += text
	} else if text != "" {
		t.segments = append(t.segments, segment{argument: text})
	}
}

// parseVariable reads what is between the braces.
func parseVariable(inner string) (segment, string) {
	name, argument, hasArgument := strings.Cut(inner, ":")
	if read, found := variables[name]; found {
		if hasArgument {
			return segment{}, fmt.Sprintf("${%s} takes nothing behind a colon", name)
		}
		return segment{read, name, ""}, ""
	}
	read, found := named[name]
	switch {
	case !found:
		return segment{}, fmt.Sprintf("%q is not a variable", inner)
	case argument == "":
		return segment{}, fmt.Sprintf("${%s:NAME} needs a name", name)
	case name != "query" && !isToken(argument):
		return segment{}, fmt.Sprintf("%q cannot be the name of a %s", argument, name)
	case name == "header":
		argument = textproto.CanonicalMIMEHeaderKey(argument)
	}
	return segment{read, name, argument}, ""
}

// String returns the template as it was given.
func (t *Template) String() string { return t.source }

// AppendKey appends the key of a request to dst. Empty says that no variable had a value, so that the key is the same for every
// such request.
func (t *Template) AppendKey(dst []byte, r *http.Request) (key []byte, empty bool) {
	empty = true
	for i := range t.segments {
		s := &t.segments[i]
		if s.read == nil {
			dst = append(dst, s.argument...)
			continue
		}
		before := len(dst)
		dst = s.read(dst, r, s.argument)
		empty = empty && len(dst) == before
	}
	return dst, empty
}

// sentURI returns path and query byte for byte as they were sent: what net/http makes of them is escaped anew.
func sentURI(r *http.Request) string {
	uri := r.RequestURI
	if strings.HasPrefix(uri, "/") {
		return uri
	}
	_, uri, _ = strings.Cut(uri, "://") // In absolute form the host stands before them.
	if at := strings.IndexAny(uri, "/?"); at >= 0 {
		return uri[at:]
	}
	return ""
}

func sentPath(r *http.Request) string {
	path, _, _ := strings.Cut(sentURI(r), "?")
	return path
}

// appendURI appends the path and the query as they were sent.
func appendURI(dst []byte, r *http.Request, _ string) []byte { return append(dst, sentURI(r)...) }

// appendHeader appends the values of a header with ", " between them, which is what several lines of one header mean.
func appendHeader(dst []byte, r *http.Request, name string) []byte {
	if name == "Host" { // net/http keeps it apart from the others.
		return append(dst, r.Host...)
	}
	for i, value := range r.Header[name] {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, value...)
	}
	return dst
}

// appendCookie appends the value of the first cookie of that name.
func appendCookie(dst []byte, r *http.Request, name string) []byte {
	cookie, err := r.Cookie(name)
	if err != nil {
		return dst
	}
	return append(dst, cookie.Value...)
}

// appendQuery appends the first value of a query parameter, decoded. One that cannot be decoded counts as it was sent.
func appendQuery(dst []byte, r *http.Request, name string) []byte {
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		given, value, _ := strings.Cut(pair, "=")
		if unescape(given) == name {
			return append(dst, unescape(value)...)
		}
	}
	return dst
}

func unescape(text string) string {
	if decoded, err := url.QueryUnescape(text); err == nil {
		return decoded
	}
	return text
}

// hostOnly returns a host in lower case without its port.
func hostOnly(host string) string {
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
		host = host[:at]
	}
	return strings.ToLower(host)
}

// clientIP returns the address without its port.
func clientIP(remote string) string {
	if at := strings.LastIndexByte(remote, ':'); at >= 0 {
		return strings.Trim(remote[:at], "[]")
	}
	return remote
}

// isToken says whether text can be the name of a header or a cookie (RFC 9110, 5.6.2).
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return text != ""
}
