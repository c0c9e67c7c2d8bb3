// SPDX-License-Identifier: Apache-2.0

package weighthistory

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// The sizes of a record's data.
const (
	// MaxPlainBytes is how large a record is that everybody can read. A larger one has its weights packed.
	MaxPlainBytes = 256 << 10

	// MaxBytes is how large the data is at most: etcd takes an object of 1.5 MiB.
	MaxBytes = 1_400_000

	// MaxUnpackedBytes is how much is read of weights that are packed.
	MaxUnpackedBytes = 32 << 20
)

// ErrMalformed is in the error of data that no record has.
var ErrMalformed = errors.New("malformed record of weights")

// data is the JSON of a record. Weights and Packed exclude each other; Packed is the gzip of the JSON of Weights.
type data struct {
	Version        int64            `json:"version"`
	At             string           `json:"at"`
	Holder         string           `json:"holder,omitempty"`
	Reason         string           `json:"reason,omitempty"`
	MaxOverAverage string           `json:"maxOverAverage,omitempty"`
	Digested       bool             `json:"digested,omitempty"`
	Weights        map[string]int32 `json:"weights,omitempty"`
	Packed         []byte           `json:"packed,omitempty"`
}

// Encode returns the data of a ControllerRevision: plain up to [MaxPlainBytes], then packed, then with digests for IDs. The error names the
// field that is out of its bounds.
func Encode(r Record) (runtime.RawExtension, error) {
	if err := r.check(); err != nil {
		return runtime.RawExtension{}, fmt.Errorf("encoding a record of weights: %w", err)
	}
	raw, err := json.Marshal(r.plain())
	if err != nil {
		return runtime.RawExtension{}, fmt.Errorf("encoding a record of weights: %w", err)
	}
	if len(raw) > MaxPlainBytes {
		raw, err = r.packed()
	}
	if err == nil && len(raw) > MaxBytes && !r.Digested {
		raw, err = r.digested().packed()
	}
	if err == nil && len(raw) > MaxBytes {
		err = fmt.Errorf("the data must have at most %d bytes; got %d for %d weights", MaxBytes, len(raw), len(r.Weights))
	}
	if err != nil {
		return runtime.RawExtension{}, fmt.Errorf("encoding a record of weights: %w", err)
	}
	return runtime.RawExtension{Raw: raw}, nil
}

func (r Record) plain() data {
	return data{
		Version: r.Version, At: r.At.UTC().Format(time.RFC3339), Holder: r.Holder, Reason: r.Reason,
		MaxOverAverage: r.MaxOverAverage, Digested: r.Digested, Weights: r.Weights,
	}
}

// packed returns the data with the weights compressed. Keys of a map are sorted by package json, and a gzip header without a name has no
// time either: the same record gives the same bytes.
func (r Record) packed() ([]byte, error) {
	weights, err := json.Marshal(r.Weights)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(weights); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	d := r.plain()
	d.Weights, d.Packed = nil, packed.Bytes()
	return json.Marshal(d)
}

func (r Record) digested() Record {
	weights := make(map[string]int32, len(r.Weights))
	for id, weight := range r.Weights {
		key := Digest(id)
		if other, ok := weights[key]; !ok || weight < other { // Of two with one digest the same wins whatever the order.
			weights[key] = weight
		}
	}
	r.Weights, r.Digested = weights, true
	return r
}

// Decode reads what [Encode] wrote. The error wraps [ErrMalformed].
func Decode(raw runtime.RawExtension) (Record, error) {
	r, err := decode(raw.Raw)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return r, nil
}

func decode(raw []byte) (Record, error) {
	var d data
	if err := json.Unmarshal(raw, &d); err != nil {
		return Record{}, err
	}
	if d.Weights != nil && d.Packed != nil {
		return Record{}, errors.New("weights and packed are both there")
	}
	at, err := time.Parse(time.RFC3339, d.At)
	if err != nil {
		return Record{}, fmt.Errorf("at: %w", err)
	}
	if d.Packed != nil {
		if d.Weights, err = unpack(d.Packed); err != nil {
			return Record{}, fmt.Errorf("packed: %w", err)
		}
	}
	if d.Weights == nil {
		d.Weights = map[string]int32{}
	}
	r := Record{
		Version: d.Version, At: at.UTC(), Holder: d.Holder, Reason: d.Reason,
		MaxOverAverage: d.MaxOverAverage, Weights: d.Weights, Digested: d.Digested,
	}
	return r, r.check()
}

func unpack(packed []byte) (map[string]int32, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	file, err := io.ReadAll(io.LimitReader(r, MaxUnpackedBytes+1))
	if err != nil {
		return nil, err
	}
	if len(file) > MaxUnpackedBytes {
		return nil, fmt.Errorf("it has more than %d bytes", MaxUnpackedBytes)
	}
	weights := map[string]int32{}
	return weights, json.Unmarshal(file, &weights)
}
