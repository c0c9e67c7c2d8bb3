// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"strings"
)

// The variables of queries.
const (
	varDatacenters = "datacenters"
	varRing        = "ring"
	varRings       = "rings"
	varNamespace   = "namespace"
	varMigration   = "migration"
	varWindow      = "window"
)

// variables are all that there are, as messages list them.
var variables = []string{varDatacenters, varMigration, varNamespace, varRing, varRings, varWindow}

// expand replaces the variables of a query, $name or ${name}. It leaves alone what is no variable to PromQL: "$$" is one dollar, $1
// and ${1} are groups of label_replace, and a dollar before anything but a letter, such as at the end of a pattern, is itself.
func expand(query string, value func(name string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		i := strings.IndexByte(query, '$')
		if i < 0 {
			out.WriteString(query)
			return out.String(), nil
		}
		out.WriteString(query[:i])
		query = query[i+1:]
		if strings.HasPrefix(query, "$") {
			out.WriteByte('$')
			query = query[1:]
			continue
		}
		name, length, err := variable(query)
		if err != nil {
			return "", err
		}
		if name == "" {
			out.WriteByte('$')
			continue
		}
		text, err := value(name)
		if err != nil {
			return "", err
		}
		out.WriteString(text)
		query = query[length:]
	}
}

// variable returns the name of the variable at the start of what follows a dollar, and how long it is there; "" where there is none.
func variable(text string) (name string, length int, err error) {
	inner, braces := strings.CutPrefix(text, "{")
	n := 0
	for n < len(inner) && (letter(inner[n]) || n > 0 && digit(inner[n])) {
		n++
	}
	switch {
	case n == 0:
		return "", 0, nil
	case !braces:
		return inner[:n], n, nil
	case strings.HasPrefix(inner[n:], ":"):
		return "", 0, fmt.Errorf("${%s:…} has a format, as in Grafana: write $%s, which is written as it is needed", inner[:n], inner[:n])
	case !strings.HasPrefix(inner[n:], "}"):
		return "", 0, fmt.Errorf("${%s is not closed by }", inner[:n])
	}
	return inner[:n], n + 2, nil
}

func letter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

// uses returns the variables of a query, sorted, or what is wrong with one.
func uses(query string) ([]string, error) {
	var names []string
	_, err := expand(query, func(name string) (string, error) {
		if !slices.Contains(variables, name) {
			return "", unknownVariable(name)
		}
		names = append(names, name)
		return "", nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// unknownVariable says which ones there are, and what to write for those that people know from Grafana.
func unknownVariable(name string) error {
	switch name {
	case "__rate_interval", "__interval", "__range":
		return fmt.Errorf("$%s is a variable of Grafana: write $%s", name, varWindow)
	case "datacenter", "role":
		return fmt.Errorf("there is no variable $%s: write $%s", name, map[string]string{"datacenter": varDatacenters, "role": varRing}[name])
	}
	return fmt.Errorf("there is no variable $%s (there are $%s); for a dollar write $$", name, strings.Join(variables, ", $"))
}

// alternation returns a regular expression that matches each of some names and nothing else. It needs no backslash, which a string
// of PromQL would need twice in some quotes and once in others. Names are those of datacenters and HashRings.
func alternation(names []string) (string, error) {
	var out strings.Builder
	for i, name := range names {
		if i > 0 {
			out.WriteByte('|')
		}
		for _, c := range []byte(name) {
			switch {
			case letter(c), digit(c), c == '-':
				out.WriteByte(c)
			case c == '.':
				out.WriteString("[.]")
			default:
				return "", fmt.Errorf("%.64q has a character that names do not have", name)
			}
		}
	}
	return out.String(), nil
}
