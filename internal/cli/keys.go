// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// maxKeyBytes is how long a key can be, as the agent has it. In hex its text is twice that.
const maxKeyBytes = 8 << 10

// keyReader yields the keys of a lookup one by one.
type keyReader struct {
	args []string
	// lines is the standard input, nil where the keys are arguments.
	lines *bufio.Scanner
	hex   bool
	count int
	// decoded is the memory of a key that was given in hex.
	decoded []byte
}

// newKeyReader takes the keys from args or, where that is a single "-", from in: one a line, raw bytes up to the line feed.
func newKeyReader(args []string, in io.Reader, hex bool) *keyReader {
	k := &keyReader{args: args, hex: hex}
	if len(args) == 1 && args[0] == "-" {
		k.lines = bufio.NewScanner(in)
		k.lines.Buffer(make([]byte, 0, 64<<10), 64<<10)
		k.lines.Split(k.splitLines)
	}
	return k
}

// maxTextBytes is how long the text of a key can be.
func (k *keyReader) maxTextBytes() int {
	if k.hex {
		return 2 * maxKeyBytes
	}
	return maxKeyBytes
}

// splitLines is bufio.ScanLines without its removal of a carriage return, which may be part of a key.
func (k *keyReader) splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	if len(data) > k.maxTextBytes() {
		return 0, nil, bufio.ErrTooLong
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// next returns the next key, which is valid until next is called again. The error is io.EOF behind the last one.
func (k *keyReader) next() ([]byte, error) {
	text, err := k.nextText()
	switch {
	case errors.Is(err, bufio.ErrTooLong) || len(text) > k.maxTextBytes():
		return nil, fmt.Errorf("%s: the key has more than %d bytes", k.where(), maxKeyBytes)
	case err != nil || !k.hex:
		return text, err
	}
	k.decoded, err = hex.AppendDecode(k.decoded[:0], text)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not hex, which --hex asks for: two of 0-9, a-f for each byte", k.where(), text)
	}
	return k.decoded, nil
}

func (k *keyReader) nextText() ([]byte, error) {
	if k.lines == nil {
		if k.count == len(k.args) {
			return nil, io.EOF
		}
		k.count++
		return []byte(k.args[k.count-1]), nil
	}
	k.count++
	if k.lines.Scan() {
		return k.lines.Bytes(), nil
	}
	if err := k.lines.Err(); err != nil {
		return nil, err
	}
	return nil, io.EOF
}

// where names the key that next returned last.
func (k *keyReader) where() string {
	if k.lines == nil {
		return fmt.Sprintf("key %d", k.count)
	}
	return fmt.Sprintf("standard input, line %d", k.count)
}

// flushing writes out what is there before it waits for more, so that a program which sends a key and waits for the answer
// gets it, while a long list of keys is still answered in large writes.
type flushing struct {
	in  io.Reader
	out *bufio.Writer
}

func (f flushing) Read(p []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, err
	}
	return f.in.Read(p)
}
