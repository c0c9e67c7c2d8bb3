// SPDX-License-Identifier: Apache-2.0

// Package routing describes the files that the operator publishes for a HashRing, and that readers find in a mounted
// directory: a snapshot in a slot, and routing.json, which says what the slots are for.
//
// The operator, the agent and the command line share this package, so that writer and readers cannot disagree.
package routing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strconv"
)

// APIVersion is the version of routing.json that this package writes and reads.
const APIVersion = "ringwright.dev/v1alpha1"

// FileName is the name of the routing file in a ConfigMap and in a mounted directory.
const FileName = "routing.json"

// MaxBytes is the largest routing file that is read.
const MaxBytes = 512 << 10

// MaxChunks is how many files the snapshot of a slot can be cut into.
const MaxChunks = 16

// Slot is one of the two places in which a snapshot is published.
type Slot string

const (
	// SlotA holds the first ring of a HashRing.
	SlotA Slot = "a"
	// SlotB is the other one.
	SlotB Slot = "b"
)

// FileName returns the name of the slot's file in a ConfigMap and in a mounted directory: that of its first chunk.
func (s Slot) FileName() string { return s.ChunkFileName(0) }

// ChunkFileName returns the name of the file that holds a chunk of the slot, counted from 0: "ring-a.snap",
// "ring-a.snap.1".
func (s Slot) ChunkFileName(chunk int) string {
	return "ring-" + string(s) + ".snap" + suffix(".", chunk)
}

// ChunkFolder returns the name of the subdirectory in which a chunk of the slot may lie: "a", "a-1". It is what the name
// of the chunk's ConfigMap ends in.
func (s Slot) ChunkFolder(chunk int) string { return string(s) + suffix("-", chunk) }

func suffix(separator string, chunk int) string {
	if chunk == 0 {
		return ""
	}
	return separator + strconv.Itoa(chunk)
}

// File is the content of routing.json. What is not set is left out.
type File struct {
	// APIVersion is APIVersion.
	APIVersion string `json:"apiVersion"`
	// Ring is the namespace and name of the HashRing, "cdn/edge-cache", as [CheckRingName] takes it.
	Ring string `json:"ring"`
	// UID is the UID of the HashRing; absent where the files were built without a cluster. A HashRing that was deleted and
	// made again under its old name counts generations anew, and this is how readers can tell.
	UID string `json:"uid,omitempty"`
	// Generation grows by one with every change of this file, from 1 on.
	Generation int64 `json:"generation"`
	// LeaderEpoch numbers the operator that wrote the file among those that led, from 1 on; absent where nobody elects a
	// leader. It never falls, and of two files the one of the lower epoch is the older one, whatever the generations.
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
	// Stable is the ring that answers, save for the keys that Split sends to Candidate.
	Stable Reference `json:"stable"`
	// Candidate is the ring that a migration goes to; nil where there is none. It lies in the other slot.
	Candidate *Reference `json:"candidate,omitempty"`
	// Split says which keys the candidate answers; nil, and none where there is a candidate, is no key.
	Split *Split `json:"split,omitempty"`
	// Addresses gives the dial address, "host:port", of each backend whose identity is not its address.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Down are the identities of backends that are on the ring and cannot serve, ascending, each once: readers pass over them to
	// the next one on the ring. A change of it is none of the ring. It is absent where nobody is down, and where the file would have
	// more than MaxBytes with it.
	Down []string `json:"down,omitempty"`
}

// Reference names a snapshot and where it lies.
type Reference struct {
	Slot Slot `json:"slot"`
	// Digest is "sha256:" and 64 hex digits of the snapshot.
	Digest string `json:"digest"`
	// Version is the algorithm: "V1", "V2", "V3".
	Version string `json:"version"`
	// Revision numbers the rings that the HashRing published, from 1 on; 0, which is left out, is not known.
	Revision int64 `json:"revision,omitempty"`
	// Chunks is how many files the snapshot is cut into, 2 to MaxChunks; 0, which is left out, is one file. A reader that
	// knows no chunks refuses the field and keeps the ring that it has.
	Chunks int `json:"chunks,omitempty"`
}

// NewReference returns the reference to a snapshot that is cut into a number of files, 1 to MaxChunks. Its revision is 0.
func NewReference(slot Slot, digest, version string, files int) Reference {
	r := Reference{Slot: slot, Digest: digest, Version: version}
	if files > 1 {
		r.Chunks = files
	}
	return r
}

// Files returns the names of the files whose contents make up the snapshot, one behind the other.
func (r Reference) Files() []string {
	names := make([]string, max(r.Chunks, 1))
	for i := range names {
		names[i] = r.Slot.ChunkFileName(i)
	}
	return names
}

// checksumField is what the canonical bytes have before the eight digits of their checksum, and checksumEnd what they have behind.
const (
	checksumField = `,"checksum":"`
	checksumEnd   = "\"}\n"
)

// Encode returns the canonical bytes: fields in the order of the struct, the keys of maps sorted, no white space, a
// checksum and a line feed at the end. Equal files have equal bytes.
func (f File) Encode() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", FileName, err)
	}
	body := bytes.TrimSuffix(out.Bytes(), []byte("}\n"))
	text := fmt.Appendf(body, "%s%08x%s", checksumField, crc32.ChecksumIEEE(body), checksumEnd)
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s would have %d bytes, the limit is %d", FileName, len(text), MaxBytes)
	}
	return text, nil
}

// sealed is a file with the CRC-32 (IEEE) of all bytes before `,"checksum":`, in eight lower-case hex digits. A person who writes the
// file leaves it out.
type sealed struct {
	File
	Checksum string `json:"checksum"`
}

// Parse reads routing.json. It refuses what it does not know: a reader that passed over a field could route wrongly. It takes what
// every reader in every language takes, and no more: each name once and in its own letters, and no null. The checksum is compared
// where there is one.
func Parse(data []byte) (File, error) {
	if len(data) > MaxBytes {
		return File{}, fmt.Errorf("%s has %d bytes, the limit is %d", FileName, len(data), MaxBytes)
	}
	var f sealed
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return File{}, fmt.Errorf("reading %s: %w", FileName, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return File{}, fmt.Errorf("reading %s: there is something behind the object", FileName)
	}
	if err := checkForm(data); err != nil {
		return File{}, fmt.Errorf("reading %s: %w", FileName, err)
	}
	if err := f.checkSum(data); err != nil {
		return File{}, err
	}
	return f.File, f.check()
}

// checkSum compares the checksum with the bytes that f was read from.
func (f sealed) checkSum(data []byte) error {
	if f.Checksum == "" {
		return nil
	}
	body, last := bytes.CutSuffix(data, []byte(checksumField+f.Checksum+checksumEnd))
	if !last {
		return fmt.Errorf("%s: checksum is there and not the last field in its canonical form: it was edited; without the field it can be read", FileName)
	}
	if sum := fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)); sum != f.Checksum {
		return fmt.Errorf("%s: checksum is %q, that of the content is %q: a file that was edited has to go without", FileName, f.Checksum, sum)
	}
	return nil
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (f File) check() error {
	switch {
	case f.APIVersion != APIVersion:
		return fmt.Errorf("%s: apiVersion is %q, this reader knows %q", FileName, f.APIVersion, APIVersion)
	case f.Generation < 1:
		return fmt.Errorf("%s: generation is %d, not at least 1", FileName, f.Generation)
	case f.LeaderEpoch < 0:
		return fmt.Errorf("%s: leaderEpoch is %d, not at least 0", FileName, f.LeaderEpoch)
	}
	if err := CheckRingName(f.Ring); err != nil {
		return fmt.Errorf("%s: ring is %w", FileName, err)
	}
	if err := f.Stable.check("stable"); err != nil {
		return err
	}
	if err := f.checkCandidate(); err != nil {
		return err
	}
	for i, id := range f.Down {
		if id == "" || i > 0 && id <= f.Down[i-1] {
			return fmt.Errorf("%s: down[%d] is %q, which is empty or does not come after the one before", FileName, i, id)
		}
	}
	return nil
}

func (f File) checkCandidate() error {
	switch {
	case f.Candidate == nil && f.Split == nil:
		return nil
	case f.Candidate == nil:
		return fmt.Errorf("%s: split is there without a candidate", FileName)
	case f.Candidate.Slot == f.Stable.Slot:
		return fmt.Errorf("%s: candidate.slot is %q, which is that of stable", FileName, f.Candidate.Slot)
	}
	if err := f.Candidate.check("candidate"); err != nil || f.Split == nil {
		return err
	}
	return f.Split.check()
}

func (r Reference) check(field string) error {
	switch {
	case r.Slot != SlotA && r.Slot != SlotB:
		return fmt.Errorf("%s: %s.slot is %q, not a or b", FileName, field, r.Slot)
	case !digestForm.MatchString(r.Digest):
		return fmt.Errorf("%s: %s.digest is %q, not sha256: and 64 hex digits", FileName, field, r.Digest)
	case r.Version == "":
		return fmt.Errorf("%s: %s.version is missing", FileName, field)
	case r.Revision < 0:
		return fmt.Errorf("%s: %s.revision is %d, not at least 0", FileName, field, r.Revision)
	case r.Chunks < 0 || r.Chunks == 1 || r.Chunks > MaxChunks:
		return fmt.Errorf("%s: %s.chunks is %d, not 2 to %d; one file is one without chunks", FileName, field, r.Chunks, MaxChunks)
	}
	return nil
}
