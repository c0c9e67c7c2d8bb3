// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// lookedUp is the answer to a key before it is printed. It is valid until the next key.
type lookedUp struct {
	key    []byte
	where  func() string
	hash   uint32
	owners []int
}

// answerWriter prints answers one by one. After an error of write, close still ends what was begun.
type answerWriter interface {
	write(a lookedUp) error
	close() error
}

func newAnswerWriter(out *bufio.Writer, o *lookupOptions, ring *opened) answerWriter {
	base := answerBase{out: out, ring: ring, hex: o.hex}
	switch o.output.value {
	case formatTSV:
		return &tsvAnswers{base}
	case formatJSON:
		return &jsonAnswers{answerBase: base}
	case formatYAML:
		return &yamlAnswers{answerBase: base}
	default:
		return &tableAnswers{answerBase: base, table: printers.GetNewTabWriter(out), successors: o.owners > 1}
	}
}

type answerBase struct {
	out  *bufio.Writer
	ring *opened
	hex  bool
}

// dial returns the address of a backend, or its identity where there is no address.
func (b *answerBase) dial(backend int) string {
	if address := b.ring.address(backend); address != "" {
		return address
	}
	return b.ring.ring.ID(backend)
}

func (b *answerBase) answer(a lookedUp) Answer {
	answer := Answer{Hash: a.hash, Owners: make([]Owner, len(a.owners))}
	if b.hex || !utf8.Valid(a.key) {
		text := hex.EncodeToString(a.key)
		answer.KeyHex = &text
	} else {
		text := string(a.key)
		answer.Key = &text
	}
	for i, backend := range a.owners {
		answer.Owners[i] = Owner{ID: b.ring.ring.ID(backend), Address: b.ring.address(backend), Zone: b.ring.ring.Zone(backend)}
	}
	return answer
}

// tsvAnswers prints a line for each key: the key, then the address of each owner.
type tsvAnswers struct{ answerBase }

func (t *tsvAnswers) write(a lookedUp) error {
	line := t.out.AvailableBuffer()
	switch {
	case t.hex:
		line = hex.AppendEncode(line, a.key)
	case bytes.ContainsAny(a.key, "\t\n"):
		return fmt.Errorf("%s: %q has a tab or a line feed, which a column of -o tsv cannot hold: use --hex", a.where(), a.key)
	default:
		line = append(line, a.key...)
	}
	for _, backend := range a.owners {
		line = append(append(line, '\t'), t.dial(backend)...)
	}
	_, err := t.out.Write(append(line, '\n'))
	return err
}

func (t *tsvAnswers) close() error { return nil }

// jsonAnswers prints one array, an element a line.
type jsonAnswers struct {
	answerBase
	begun bool
}

func (j *jsonAnswers) write(a lookedUp) error {
	var text bytes.Buffer
	if j.begun {
		text.WriteString(",\n  ")
	} else {
		text.WriteString("[\n  ")
	}
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(j.answer(a)); err != nil {
		return err
	}
	j.begun = true
	_, err := j.out.Write(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	return err
}

func (j *jsonAnswers) close() error {
	end := "\n]\n"
	if !j.begun {
		end = "[]\n"
	}
	_, err := j.out.WriteString(end)
	return err
}

// yamlAnswers prints one list.
type yamlAnswers struct {
	answerBase
	begun bool
}

func (y *yamlAnswers) write(a lookedUp) error {
	y.begun = true
	text, err := yaml.Marshal([]Answer{y.answer(a)})
	if err != nil {
		return err
	}
	_, err = y.out.Write(text)
	return err
}

func (y *yamlAnswers) close() error {
	if y.begun {
		return nil
	}
	_, err := y.out.WriteString("[]\n")
	return err
}

// tableAnswers aligns what it prints in batches, so that a long list of keys does not have to fit into memory.
type tableAnswers struct {
	answerBase
	table interface {
		io.Writer
		Flush() error
	}
	successors bool
	lines      int
}

const tableBatch = 100

func (t *tableAnswers) write(a lookedUp) error {
	if t.lines == 0 {
		t.header()
	}
	t.lines++
	key := printable(a.key)
	if t.hex {
		key = hex.EncodeToString(a.key)
	}
	owner := a.owners[0]
	cells := []string{key, fmt.Sprintf("%08x", a.hash), t.ring.ring.ID(owner)}
	if t.named() {
		cells = append(cells, t.ring.address(owner))
	}
	cells = append(cells, dash(t.ring.ring.Zone(owner)))
	if t.successors {
		names := make([]string, len(a.owners)-1)
		for i, backend := range a.owners[1:] {
			names[i] = t.ring.ring.ID(backend)
		}
		cells = append(cells, dash(strings.Join(names, ",")))
	}
	if _, err := fmt.Fprintln(t.table, strings.Join(cells, "\t")); err != nil || t.lines%tableBatch != 0 {
		return err
	}
	return t.table.Flush()
}

func (t *tableAnswers) header() {
	titles := []string{"KEY", "HASH", "OWNER"}
	if t.named() {
		titles = append(titles, "ADDRESS")
	}
	titles = append(titles, "ZONE")
	if t.successors {
		titles = append(titles, "SUCCESSORS")
	}
	printf(t.table, "%s\n", strings.Join(titles, "\t"))
}

// named says that the addresses are known and differ from the identities.
func (t *tableAnswers) named() bool { return t.ring.file != nil && len(t.ring.file.Addresses) > 0 }

func (t *tableAnswers) close() error { return t.table.Flush() }
