// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// The files of a catalog in its ConfigMap: one of them.
const (
	FileName     = "catalog.json"
	GzipFileName = "catalog.json.gz"
)

// APIVersion names the form of the file.
const APIVersion = "ringwright.dev/v1alpha1"

// MaxBytes is how much a ConfigMap takes. MaxFileBytes is how large a file is read, unpacked: far more than fits.
const (
	MaxBytes     = 1 << 20
	MaxFileBytes = 64 << 20
)

// Encode returns the file: canonical JSON, with a line for each ring and policy so that two of them can be compared as text.
func (c Catalog) Encode() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"apiVersion":%q,"kind":"Catalog","rings":[`, APIVersion)
	if err := lines(&out, c.Rings); err != nil {
		return nil, err
	}
	out.WriteString(`],"tombstones":[`)
	if err := lines(&out, c.Tombstones); err != nil {
		return nil, err
	}
	out.WriteString("]")
	if err := optional(&out, "weightPolicies", c.WeightPolicies); err != nil {
		return nil, err
	}
	if err := optional(&out, "weightTombstones", c.WeightTombstones); err != nil {
		return nil, err
	}
	out.WriteString("}\n")
	return out.Bytes(), nil
}

// optional writes a list that is left out where it is empty.
func optional[T any](out *bytes.Buffer, name string, items []T) error {
	if len(items) == 0 {
		return nil
	}
	fmt.Fprintf(out, ",%q:[", name)
	if err := lines(out, items); err != nil {
		return err
	}
	out.WriteString("]")
	return nil
}

func lines[T any](out *bytes.Buffer, items []T) error {
	for i, item := range items {
		text, err := json.Marshal(item)
		if err != nil {
			return fmt.Errorf("encoding the catalog: %w", err)
		}
		out.WriteByte('\n')
		out.Write(text)
		if i < len(items)-1 {
			out.WriteByte(',')
		} else {
			out.WriteByte('\n')
		}
	}
	return nil
}

// Parse reads what Encode wrote.
func Parse(file []byte) (Catalog, error) {
	var read struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Catalog
	}
	if err := json.Unmarshal(file, &read); err != nil {
		return Catalog{}, fmt.Errorf("reading a catalog: %w", err)
	}
	if read.APIVersion != APIVersion || read.Kind != "Catalog" {
		return Catalog{}, fmt.Errorf("reading a catalog: apiVersion %q and kind %q are not %q and %q", read.APIVersion, read.Kind, APIVersion, "Catalog")
	}
	return read.Catalog, nil
}

// Payload is what a ConfigMap holds: the file as it is where that fits, so that everybody can read it, otherwise packed.
type Payload struct {
	Data       map[string]string
	BinaryData map[string][]byte
}

// TooLargeError says that a catalog fits into no ConfigMap.
type TooLargeError struct {
	Rings, Tombstones, WeightPolicies, Bytes, Packed int
}

// Error gives the size and the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the catalog of %d rings, %d tombstones and %d WeightPolicies has %d bytes, packed %d, and a ConfigMap takes %d",
		e.Rings, e.Tombstones, e.WeightPolicies, e.Bytes, e.Packed, MaxBytes)
}

// Pack returns the payload of c. The error is a [TooLargeError] where it does not fit.
func (c Catalog) Pack() (Payload, error) {
	file, err := c.Encode()
	if err != nil {
		return Payload{}, err
	}
	if len(file) <= MaxBytes {
		return Payload{Data: map[string]string{FileName: string(file)}}, nil
	}
	packed, err := compress(file)
	if err != nil {
		return Payload{}, err
	}
	if len(packed) > MaxBytes {
		return Payload{}, &TooLargeError{
			Rings: len(c.Rings), Tombstones: len(c.Tombstones) + len(c.WeightTombstones), WeightPolicies: len(c.WeightPolicies), Bytes: len(file), Packed: len(packed),
		}
	}
	return Payload{BinaryData: map[string][]byte{GzipFileName: packed}}, nil
}

// compress gives the same bytes for the same file: a gzip header without a name has no time either.
func compress(file []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(file); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Unpack reads the catalog in a payload.
func (p Payload) Unpack() (Catalog, error) {
	if file, ok := p.Data[FileName]; ok {
		return Parse([]byte(file))
	}
	packed, ok := p.BinaryData[GzipFileName]
	if !ok {
		return Catalog{}, fmt.Errorf("there is neither %s nor %s", FileName, GzipFileName)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return Catalog{}, fmt.Errorf("unpacking %s: %w", GzipFileName, err)
	}
	file, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	if err != nil {
		return Catalog{}, fmt.Errorf("unpacking %s: %w", GzipFileName, err)
	}
	if len(file) > MaxFileBytes {
		return Catalog{}, fmt.Errorf("unpacking %s: it has more than %d bytes", GzipFileName, MaxFileBytes)
	}
	return Parse(file)
}
