// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/proxy"
)

func TestTemplateKeys(t *testing.T) {
	rows := map[string]struct{ template, target, want string }{
		"path":                     {"${path}", "/a/b?x=1", "/a/b"},
		"path as it was sent":      {"${path}", "/a%2Fb%20c/../d", "/a%2Fb%20c/../d"},
		"uri":                      {"${uri}", "/a?x=1&y=%20", "/a?x=1&y=%20"},
		"uri, empty query":         {"${uri}", "/a?", "/a?"},
		"uri, none":                {"${uri}", "/a", "/a"},
		"host":                     {"${host}", "/", "shop.example"},
		"host header":              {"${header:host}", "/", "Shop.Example:8080"},
		"method":                   {"${method}", "/", "GET"},
		"client":                   {"${client}", "/", "192.0.2.1"},
		"header":                   {"${header:x-user}", "/", "ann, bob"},
		"cookie":                   {"${cookie:sid}", "/", "s1"},
		"query":                    {"${query:id}", "/?a=1&id=7+8%21&id=9", "7 8!"},
		"query, name encoded":      {"${query:id}", "/?%69d=7", "7"},
		"query, not decodable":     {"${query:id}", "/?id=%zz", "%zz"},
		"text around":              {"u:${header:X-User}|${path};", "/p", "u:ann, bob|/p;"},
		"dollars":                  {"$$${path}$$", "/p", "$/p$"},
		"one missing of two":       {"${header:X-No}${path}", "/p", "/p"},
		"two together":             {"${method}${path}", "/p", "GET/p"},
		"absolute form":            {"${uri}", "http://other.example/p?q", "/p?q"},
		"query of several letters": {"${query:id}", "/?idx=1&id=2", "2"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			template, err := proxy.ParseTemplate(row.template)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("GET", row.target, nil)
			r.Host = "Shop.Example:8080"
			r.Header["X-User"] = []string{"ann", "bob"}
			r.Header.Set("Cookie", "a=b; sid=s1; sid=s2")
			key, empty := template.AppendKey([]byte("before "), r)
			if string(key) != "before "+row.want || empty {
				t.Errorf("key %q, empty %v", key, empty)
			}
		})
	}
}

func TestTemplateEmpty(t *testing.T) {
	template, err := proxy.ParseTemplate("user:${header:X-User}${cookie:sid}${query:id}")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/?idx=1", nil)
	if key, empty := template.AppendKey(nil, r); string(key) != "user:" || !empty {
		t.Errorf("key %q, empty %v", key, empty)
	}
}

func TestTemplateErrors(t *testing.T) {
	rows := map[string]struct {
		template string
		position int
		want     string
	}{
		"none":             {"", 1, "no variable is in it"},
		"text only":        {"abc$$", 1, "no variable is in it"},
		"bare dollar":      {"ab$x", 3, "a dollar without braces"},
		"dollar at end":    {"${path}$", 8, "a dollar without braces"},
		"not closed":       {"ab${path", 3, "not closed"},
		"unknown":          {"a${pth}", 2, `"pth" is not a variable`},
		"empty":            {"${}", 1, `"" is not a variable`},
		"argument":         {"${path:2}", 1, "${path} takes nothing behind a colon"},
		"no argument":      {"${path}${header}", 8, "${header:NAME} needs a name"},
		"empty argument":   {"${cookie:}", 1, "${cookie:NAME} needs a name"},
		"bad header":       {"${header:a b}", 1, `"a b" cannot be the name of a header`},
		"case of the name": {"${Path}", 1, `"Path" is not a variable`},
		"too long":         {"${path}" + strings.Repeat("x", proxy.MaxTemplateBytes-6), proxy.MaxTemplateBytes + 1, "4097 bytes, the limit is 4096"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			_, err := proxy.ParseTemplate(row.template)
			var bad *proxy.TemplateError
			if !errors.As(err, &bad) || bad.Position != row.position || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q at %d", err, row.want, row.position)
			}
		})
	}
	if _, err := proxy.ParseTemplate("${path}" + strings.Repeat("x", proxy.MaxTemplateBytes-7)); err != nil {
		t.Error(err)
	}
}
