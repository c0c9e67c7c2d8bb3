// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strings"
	"testing"
)

func number(v float64) *float64 { return &v }

func TestConditions(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		n    numbers
		want truth
	}{
		"holds":                         {"value > 0.001 && value > 2.0 * baseline", numbers{number(.01), number(.001), nil}, isTrue},
		"does not":                      {"value > 0.001 && value > 2.0 * baseline", numbers{number(.01), number(.01), nil}, isFalse},
		"whole numbers":                 {"value > 2 * baseline", numbers{number(2.1), number(1), nil}, isTrue},
		"division of whole numbers":     {"value > 1/2", numbers{number(.4), nil, nil}, isFalse},
		"negative whole numbers":        {"value > -1", numbers{number(-2), nil, nil}, isFalse},
		"unknown baseline that decides": {"value > 2.0 * baseline", numbers{number(1), nil, nil}, unknown},
		"unknown baseline after or":     {"value <= 0.001 || value <= 1.2 * baseline", numbers{number(.0005), nil, nil}, isTrue},
		"unknown baseline after and":    {"value > 0.001 && value > 2.0 * baseline", numbers{number(.0005), nil, nil}, isFalse},
		"unknown baseline before or":    {"value <= 1.2 * baseline || value <= 0.001", numbers{number(.0005), nil, nil}, isTrue},
		"unknown samples":               {"samples >= 10", numbers{number(1), number(1), nil}, unknown},
		"samples":                       {"samples >= 10", numbers{number(1), number(1), number(10)}, isTrue},
		"a quotient that is not finite": {"value / baseline > 2", numbers{number(1), number(0), nil}, isTrue},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, err := compile(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := compiled.eval(c.n); got != c.want || err != nil {
				t.Errorf("%q is %v (%v), want %v", c.text, got, err, c.want)
			}
		})
	}
}

func TestConditionsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"valu > 1":                   "at character 1: undeclared reference to 'valu'",
		"value":                      "is of type double, and has to be true or false",
		"value >":                    "at character 8: Syntax error",
		"value > 'a'":                "at character 7: found no matching overload",
		"[1,2].exists(x, x > value)": "undeclared reference to 'x'",
		"value + true > 1":           "found no matching overload for '_+_'",
		"":                           "Syntax error",
		strings.Repeat("1 < 2 && ", 114) + "true": "has 1030 bytes, the limit is 1024",
	} {
		if _, err := compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("compiling %.40q says %v, want %q", text, err, want)
		}
	}
}
