// SPDX-License-Identifier: Apache-2.0

package readers_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/testenv/golden"
	"github.com/ringwright/ringwright/pkg/routing"
)

// goodRouting has every field. The rows of TestRouting edit it.
const goodRouting = `{"apiVersion":"ringwright.dev/v1alpha1","ring":"cdn/edge","uid":"u-1","generation":41,"leaderEpoch":12,` +
	`"stable":{"slot":"a","digest":"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","version":"V1","revision":6,"chunks":16},` +
	`"candidate":{"slot":"b","digest":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","version":"V2"},` +
	`"split":{"seed":4294967295,"basisPoints":{"*":0,"lab01":10000}},"addresses":{"cache-3":"10.0.0.1:80"},"down":["a","b"]}`

// routingRow is an edit of a good routing.json.
type routingRow struct {
	name, old, new string
	accepted       bool
}

func routingRows() []routingRow {
	drop := func(name, field string) routingRow { return routingRow{"without " + name, field, "", true} }
	bad := func(name, old, new string) routingRow { return routingRow{name, old, new, false} }
	rows := []routingRow{
		{"as it is", "", "", true},
		{"white space", `{"apiVersion":`, ` {  "apiVersion" : `, true},
		{"white space behind", `["a","b"]}`, `["a","b"] }  `, true},
		{"escapes", `"cache-3"`, `"c\u0061che\u002d\ud83d\ude00\/"`, true},
		{"a zero of the epoch", `"leaderEpoch":12`, `"leaderEpoch":0`, true},
		{"a zero of the revision", `"revision":6`, `"revision":0`, true},
		{"the largest generation", `"generation":41`, `"generation":9223372036854775807`, true},
		{"no entries", `"basisPoints":{"*":0,"lab01":10000}`, `"basisPoints":{}`, true},
		{"nobody down", `["a","b"]`, `[]`, true},
		drop("uid", `"uid":"u-1",`), drop("epoch", `"leaderEpoch":12,`), drop("revision", `,"revision":6`), drop("chunks", `,"chunks":16`),
		drop("split", `"split":{"seed":4294967295,"basisPoints":{"*":0,"lab01":10000}},`),
		drop("addresses", `"addresses":{"cache-3":"10.0.0.1:80"},`), drop("down", `,"down":["a","b"]`),
		bad("no API version", `"apiVersion":"ringwright.dev/v1alpha1",`, ""), bad("a future API version", "v1alpha1", "v1alpha2"),
		bad("no ring", `"ring":"cdn/edge",`, ""), bad("no namespace", "cdn/edge", "/edge"), bad("no name", "cdn/edge", "cdn/"), bad("no slash", "cdn/edge", "edge"),
		bad("no generation", `"generation":41,`, ""), bad("generation 0", `"generation":41`, `"generation":0`),
		bad("a generation below 0", `"generation":41`, `"generation":-1`), bad("a generation in parts", `"generation":41`, `"generation":41.5`),
		bad("a generation as text", `"generation":41`, `"generation":"41"`), bad("a generation too large", `"generation":41`, `"generation":9223372036854775808`),
		bad("a generation with a zero", `"generation":41`, `"generation":041`), bad("a generation with an exponent", `"generation":41`, `"generation":1e3`),
		bad("an epoch below 0", `"leaderEpoch":12`, `"leaderEpoch":-1`),
		bad("an unknown field", `"generation"`, `"weights":1,"generation"`), bad("an unknown field of a ring", `"slot":"a"`, `"slot":"a","offset":1`),
		bad("an unknown field of the split", `"seed"`, `"hash":1,"seed"`),
		bad("another slot", `"slot":"a"`, `"slot":"c"`), bad("a slot in capitals", `"slot":"a"`, `"slot":"A"`), bad("the same slot", `"slot":"b"`, `"slot":"a"`),
		bad("no slot", `"slot":"a",`, ""), bad("a short digest", "sha256:a", "sha256:"), bad("a long digest", "sha256:a", "sha256:aa"),
		bad("a digest in capitals", "sha256:a", "sha256:A"), bad("another digest", "sha256:a", "sha512:a"), bad("no version", `"version":"V1",`, ""),
		bad("an empty version", `"version":"V1"`, `"version":""`), bad("a revision below 0", `"revision":6`, `"revision":-6`),
		bad("one chunk", `"chunks":16`, `"chunks":1`), bad("17 chunks", `"chunks":16`, `"chunks":17`), bad("chunks below 0", `"chunks":16`, `"chunks":-2`),
		bad("no stable ring", `"stable":`, `"table":`), bad("a split alone", `"candidate":{"slot":"b","digest":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","version":"V2"},`, ""),
		bad("a seed too large", "4294967295", "4294967296"), bad("a seed below 0", "4294967295", "-1"), bad("no basis points", `,"basisPoints":{"*":0,"lab01":10000}`, ""),
		bad("basis points too large", "10000", "10001"), bad("basis points below 0", "10000", "-1"), bad("basis points as text", "10000", `"1"`),
		bad("a datacenter without a name", `"lab01"`, `""`), bad("a long datacenter", "lab01", strings.Repeat("x", 64)),
		bad("too many datacenters", `"lab01":10000`, datacenters(1024)), bad("an address that is a number", `"10.0.0.1:80"`, "1"), bad("addresses as a list", `{"cache-3":"10.0.0.1:80"}`, `["x"]`),
		bad("down out of order", `["a","b"]`, `["b","a"]`), bad("down twice", `["a","b"]`, `["a","a"]`), bad("an empty one down", `["a","b"]`, `["","b"]`),
		bad("numbers down", `["a","b"]`, `[1]`), bad("something behind", `["a","b"]}`, `["a","b"]}{}`), bad("cut off", `["a","b"]}`, `["a","b"]`), bad("a comma too many", `["a","b"]`, `["a","b",]`),
		{"1,024 datacenters", `"lab01":10000`, datacenters(1023), true}, {"a datacenter of 63 bytes", "lab01", strings.Repeat("x", 63), true},
		{"a field twice", `"generation"`, `"generation":40,"generation"`, false}, {"an identity twice", `"cache-3"`, `"cache-3":"x","cache-3"`, false},
		{"a field in capitals", `"generation"`, `"Generation"`, false}, {"null for a field", `"uid":"u-1"`, `"uid":null`, false},
		{"null for the candidate's split", `{"seed":4294967295,"basisPoints":{"*":0,"lab01":10000}}`, `null`, false},
		{"no seed", `"seed":4294967295,`, "", false}, {"zero chunks", `"chunks":16`, `"chunks":0`, false},
		{"an empty checksum", `"b"]}`, "\"b\"],\"checksum\":\"\"}\n", false},
		{"half a surrogate pair", `"cache-3"`, `"\ud83d"`, false},
	}
	return append(append(rows, ringRows()...), checksumRows()...)
}

// ringRows are names that Kubernetes takes, and some that it does not.
func ringRows() []routingRow {
	row := func(name, new string, accepted bool) routingRow { return routingRow{name, "cdn/edge", new, accepted} }
	n, r := strings.Repeat("n", 63), strings.Repeat("r", 253)
	return []routingRow{
		row("the longest ring", n+"/"+r, true), row("a ring with dots", "0-1/a.b-c.2", true),
		row("a long namespace", n+"n/edge", false), row("a long name", "cdn/"+r+"r", false),
		row("a namespace in capitals", "Cdn/edge", false), row("a namespace with a dot", "c.d/edge", false), row("a namespace that begins with a hyphen", "-c/edge", false),
		row("a namespace that ends in a hyphen", "c-/edge", false), row("a name in capitals", "cdn/Edge", false), row("a name that begins with a dot", "cdn/.a", false),
		row("a name that ends in a dot", "cdn/a.", false), row("two dots", "cdn/a..b", false), row("a hyphen before a dot", "cdn/a-.b", false), row("a hyphen behind a dot", "cdn/a.-b", false),
		row("two slashes", "cdn/a/b", false), row("a blank in the name", "cdn/a b", false), row("a letter of another alphabet", "cdn/ä", false), row("a digit of another script", `cdn/\u0663`, false),
		row("a line feed behind the name", `cdn/edge\u000a`, false), row("a line feed in the name", `cdn/edge\u000aserver {}`, false),
	}
}

// checksumRows seal the good file with a checksum, and some not quite.
func checksumRows() []routingRow {
	const end = `"down":["a","b"]}`
	body := strings.TrimSuffix(goodRouting, "}")
	sum := fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body)))
	sealed := func(name string, accepted bool, tail string) routingRow {
		return routingRow{name, end, strings.TrimSuffix(end, "}") + tail, accepted}
	}
	field := `,"checksum":"` + sum + `"`
	return []routingRow{
		sealed("a checksum", true, field+"}\n"),
		sealed("a checksum without a line feed", false, field+"}"),
		sealed("a checksum and a blank", false, field+" }\n"),
		sealed("a blank and a checksum", false, " "+field+"}\n"),
		sealed("something behind the checksum", false, field+"}\n\n"),
		sealed("a checksum in capitals", false, strings.ToUpper(field)+"}\n"),
		sealed("a wrong checksum", false, `,"checksum":"00000000"`+"}\n"),
		sealed("a short checksum", false, `,"checksum":"`+sum[1:]+`"`+"}\n"),
		sealed("a checksum that is a number", false, `,"checksum":12345678`+"}\n"),
		{"a checksum in front", `"ring":"cdn/edge"`, `"ring":"cdn/edge"` + field, false},
	}
}

func datacenters(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"d%d":1`, i)
	}
	return strings.Join(list, ",")
}

// TestRouting writes which routing.json Go refuses.
func TestRouting(t *testing.T) {
	out := new(bytes.Buffer)
	for _, row := range routingRows() {
		text := strings.Replace(goodRouting, row.old, row.new, 1)
		if row.name != "as it is" && text == goodRouting {
			t.Errorf("%s: edits nothing", row.name)
		}
		_, err := routing.Parse([]byte(text))
		if accepted := err == nil; accepted != row.accepted {
			t.Errorf("%s: error %v, accepted should be %v", row.name, err, row.accepted)
		}
		verdict := "refused"
		if row.accepted {
			verdict = "accepted"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", verdict, row.name, row.old, strings.ReplaceAll(row.new, "\n", `\n`))
	}
	golden.Assert(t, filepath.Join("testdata", "routing.json"), []byte(goodRouting))
	golden.Assert(t, filepath.Join("testdata", "routing.txt"), out.Bytes())
}
